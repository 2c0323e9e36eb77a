"""Makes `people.csv`, the made-up people of the tutorial: 2,000 rows, always the same.

`python docs/tutorial/make_people.py` writes it again; a test holds the file to this script.
"""

import csv
import io
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("people.csv")
CITIES = {"Berlin": 0.38, "München": 0.27, "Köln": 0.21, "Ulm": 0.06, "Bad Aibling": 0.05, "Zürich": 0.03}
PEOPLE = 2000


def people() -> str:
    """The file's text."""
    generator = np.random.default_rng(2026)
    cities = generator.choice(list(CITIES), PEOPLE, p=list(CITIES.values()))
    ages = np.clip(generator.gamma(9, 4.5, PEOPLE), 14, 99).astype(int)
    minutes = np.clip(generator.gamma(1.5, 22, PEOPLE), 0, 240).round(1)
    clicked = generator.random(PEOPLE) < 0.15 + 0.004 * (60 - np.minimum(ages, 60))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["city", "age", "minutes", "clicked"])
    for row in zip(cities, ages.tolist(), minutes.tolist(), clicked.astype(int).tolist(), strict=True):
        writer.writerow(row)
    return text.getvalue()


if __name__ == "__main__":
    FILE.write_text(people(), encoding="utf-8")
