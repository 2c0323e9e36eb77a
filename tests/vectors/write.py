"""Write the test vectors: `python -m tests.vectors.write [--new-tasks]`, from the repository's root.

Run it where the wire changes on purpose, which is a new version of it. Tasks stay as they were, as clients in the
field hold them, unless new ones are asked for.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from .campaigns import campaign_vectors, new_campaigns
from .making import new_tasks, vectors

FOLDER = Path(__file__).parent


def read(name: str) -> Any:
    """The content of a file of vectors."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def kept_tasks() -> dict[str, str]:
    """The texts of the tasks that the vectors are about."""
    return {task["name"]: task["text"] for task in read("tasks")["tasks"]}


def kept_campaigns() -> dict[str, str]:
    """The texts of the campaigns that the vectors are about."""
    if not (FOLDER / "campaigns.json").exists():
        return {}
    return {campaign["name"]: campaign["text"] for campaign in read("campaigns")["campaigns"]}


def main() -> None:
    """Compute all vectors and replace their files."""
    parser = argparse.ArgumentParser(description="write the wire's test vectors")
    parser.add_argument("--new-tasks", action="store_true", help="plan the tasks anew")
    # A task that was added to the list is planned now; those that were there stay.
    anew = parser.parse_args().new_tasks
    texts = new_tasks({} if anew else kept_tasks())
    campaigns = new_campaigns({} if anew else kept_campaigns())
    for name, content in {**vectors(texts), "campaigns": campaign_vectors(campaigns)}.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
