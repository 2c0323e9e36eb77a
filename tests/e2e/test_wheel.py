"""The wheel works in a clean environment."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*words: object, **more) -> str:
    # Nothing of this environment may leak into the clean one.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON") and key != "VIRTUAL_ENV"}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=clean, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_installs_and_answers(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "shuffledp/py.typed" in names and any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "docs"))]
    python = tmp_path / "clean" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean")
    # This environment's pip installs into the clean one, and compiles nothing that is never imported.
    pip = (sys.executable, "-m", "pip", "--python", python, "--quiet")
    run(*pip, "install", "--no-compile", "--constraint", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    shuffledp = python.parent / "shuffledp"
    assert "simulate" in run(shuffledp, "--help", cwd=tmp_path)
    out = run(
        shuffledp, "simulate", "--synthetic", "--users", 500, "--epsilon", 1, "--delta", 1e-6, "--json", cwd=tmp_path
    )
    assert '"protocol": "binary-sum"' in out
    assert run(python, "-c", "import shuffledp; print(shuffledp.__file__)", cwd=tmp_path).startswith(str(tmp_path))
