"""Hold the public interface to what the last release promised: what breaks needs a version that says so.

    python release/interface.py

griffe compares the names, parameters and defaults of the package with those at the last tag `v*`. Before 1.0 a break
needs a new minor version, after it a new major one (CONTRIBUTING.md has the policy).
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def last_tag() -> str | None:
    """The newest tag of a release that this commit comes after; None before the first."""
    words = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def may_break(before: str, after: str) -> bool:
    """Whether a version may break what an earlier one promised.

    >>> may_break("0.1.4", "0.2.0"), may_break("0.1.4", "0.1.5"), may_break("1.4.0", "1.5.0")
    (True, False, False)
    """
    old, new = (tuple(map(int, version.split(".")[:2])) for version in (before, after))
    return new[0] > old[0] or (old[0] == 0 and new > old)


def breaks(tag: str) -> list[str]:
    """What a program written for the tag may miss now, a sentence each."""
    import griffe

    before = griffe.load_git("shuffledp", ref=tag, repo=ROOT, search_paths=["src"])
    now = griffe.load("shuffledp", search_paths=[ROOT / "src"])
    return [each.explain(style=griffe.ExplanationStyle.ONE_LINE) for each in griffe.find_breaking_changes(before, now)]


def main() -> int:
    """1 if something breaks that this version may not break."""
    import griffe

    tag = last_tag()
    if tag is None:
        print("no release to compare with: there is no tag v*")
        return 0
    version = str(griffe.load("shuffledp", search_paths=[ROOT / "src"])["__version__"].value).strip("'\"")
    found = breaks(tag)
    print("\n".join(found) or f"nothing that {tag} promised is missing")
    if found and not may_break(tag.removeprefix("v"), version):
        print(f"{len(found)} breaks since {tag}, which version {version} may not have", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
