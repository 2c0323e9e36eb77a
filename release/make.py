"""Build a release: wheel and sdist, twice, with one hash; checked, with a list of what it needs and checksums.

    make release

What is in dist/ afterwards may be published: the same commit gives the same bytes on any machine with the same build
tools, which is what the second build checks, from another folder, at another time, with another umask.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


class ReleaseError(Exception):
    """Something that must not be published."""


def run(*words: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """What a command prints; its own words where it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def built(commit: str, folder: Path, umask: int) -> dict[str, bytes]:
    """Wheel and sdist of a commit, by name, built in a folder that holds nothing else."""
    source, out = folder / "source", folder / "out"
    source.mkdir(parents=True)
    before = os.umask(umask)
    try:
        archive = folder / "source.tar"
        run("git", "archive", "--format=tar", f"--output={archive}", commit)
        shutil.unpack_archive(archive, source, filter="data")
        moment = run("git", "show", "-s", "--format=%ct", commit).strip()
        run(sys.executable, "-m", "build", "--outdir", out, source, SOURCE_DATE_EPOCH=moment)
    finally:
        os.umask(before)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def build_twice(commit: str) -> dict[str, bytes]:
    """The files of a release, which two builds agree on to the last byte."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = built(commit, Path(one) / "a", 0o022)
        second = built(commit, Path(other) / "another" / "b", 0o077)
    if first != second:
        unlike = [name for name in sorted(first | second) if first.get(name) != second.get(name)]
        raise ReleaseError(f"two builds of {commit} differ in {', '.join(unlike)}: nothing was written")
    return first


def check(files: list[Path]) -> None:
    """What an index, an installer and a reader expect of the files."""
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    (wheel,) = (path for path in files if path.suffix == ".whl")
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    with zipfile.ZipFile(wheel) as archive:
        (described,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(described).decode()
    missing = [path for path in linked(text) if not (ROOT / path).exists()]
    if missing:
        raise ReleaseError(f"links of the long description lead to no file: {', '.join(missing)}")


def linked(described: str) -> list[str]:
    """The files of the repository that a long description links to, without a heading in them."""
    homes = ("https://github.com/shuffledp/shuffledp/blob/", "https://raw.githubusercontent.com/shuffledp/shuffledp/")
    found: list[str] = []
    for piece in described.split("](")[1:]:
        address = piece.partition(")")[0]
        if not address.startswith("https://"):
            raise ReleaseError(f"link {address} of the long description leads nowhere off the repository")
        own = [address.removeprefix(home) for home in homes if address.startswith(home)]
        # After the version comes the file's path.
        found += [each.partition("/")[2].partition("#")[0] for each in own]
    return found


def list_needs(wheel: Path, out: Path) -> int:
    """A CycloneDX list of all that an installation of the wheel holds; how many packages that is."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "environment" / "bin" / "python"
        run(sys.executable, "-m", "venv", python.parents[1])
        run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
        run(
            *(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"),
            *("--pyproject", ROOT / "pyproject.toml", "--output-format", "JSON", "--output-file", out, python),
        )
    return len(json.loads(out.read_text())["components"])


def main() -> int:
    """Build, check and list; 1 with a sentence where something must not be published."""
    if run("git", "status", "--porcelain", "--untracked-files=no"):
        print("commit first: a release is built from a commit, and files here differ from it", file=sys.stderr)
        return 2
    commit = run("git", "rev-parse", "HEAD").strip()
    try:
        files = build_twice(commit)
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        for name, content in files.items():
            (DIST / name).write_bytes(content)
        check([DIST / name for name in files])
        (wheel,) = DIST.glob("*.whl")
        needs = list_needs(wheel, DIST / "sbom.cdx.json")
    except ReleaseError as refused:
        print(refused, file=sys.stderr)
        return 1
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print(
        f"{commit[:12]} built twice, the same to the last byte; checked; {needs} packages in the list of what it needs"
    )
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
