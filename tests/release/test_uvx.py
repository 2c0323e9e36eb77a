"""`uvx shuffledp demo` from the built wheel: one command in an empty environment, to the first estimate."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UVX = shutil.which("uvx") or shutil.which("uvx", path=str(Path(sys.executable).parent))
MOST_MEGABYTES = 310


@pytest.mark.skipif(UVX is None, reason="needs uv: pip install '.[release]', as make release does")
def test_uvx_runs_the_live_service_from_the_wheel(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    cache = tmp_path / "cache"
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"
    }
    environment = kept | {"UV_CACHE_DIR": str(cache), "UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    words = ("demo", "--users", "60", "--clients", "1", "--json")
    done = subprocess.run(
        [str(UVX), "--python", sys.executable, "--from", str(wheel), "shuffledp", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"estimate": ' in done.stdout and '"picture": null' in done.stdout
    files = (path.stat() for path in cache.rglob("*") if path.is_file() and not path.is_symlink())
    # A file that is linked into the environment is there once.
    assert sum({each.st_ino: each.st_size for each in files}.values()) / 1e6 <= MOST_MEGABYTES
