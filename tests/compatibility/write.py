"""Write the files of the version that is to be released: `PYTHONPATH=tests python -m tests.compatibility.write`.

Once for each release that brings a new kind of file, a new version of one, or a new family of plans. What was released
is what people have: its folder is never replaced. Until then `--again` writes it anew.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from shuffledp import __version__

from .given import keys_of_nobody
from .making import write_all
from .meaning import meanings

FOLDER = Path(__file__).parent


def main() -> None:
    """Write the folder of this version, and what its files mean, as read by the version that wrote them."""
    parser = argparse.ArgumentParser(description="write the files that later versions must read")
    parser.add_argument("--again", action="store_true", help="replace them: only before the version is released")
    folder = FOLDER / __version__
    if folder.exists() and not parser.parse_args().again:
        sys.exit(f"{folder} is there: files of a version are written once.")
    with TemporaryDirectory() as place:
        made = Path(place) / "made"
        with keys_of_nobody():
            write_all(made)
        # Reading them goes on where they stopped: in a copy.
        said = meanings(Path(shutil.copytree(made, Path(place) / "read")))
        (made / "meaning.json").write_text(json.dumps(said, indent=1, sort_keys=True, allow_nan=False) + "\n", "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)


if __name__ == "__main__":
    main()
