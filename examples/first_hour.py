"""The first hour of an analyst: ten jobs on a messy file, from the shell and from Python.

The file is made up here, and as bad as real ones are: names with quotes and commas, letters of several scripts, people
without a value, an impossible age, a visit of a million minutes, and people who come several times.

Every answer below is private on its own; together they spend the sum of their epsilons (`shuffledp ledger` keeps the
account). Seeds make this script repeatable. Without them the noise is real.
"""

import csv
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np

import shuffledp
from shuffledp import cli

PEOPLE = 4000
CITIES = {"München": 0.35, "Köln": 0.25, 'Halle, "Saale"': 0.15, "北京": 0.1, "القاهرة": 0.08, "Nowhere": 0.07}
TARGET = "--epsilon 1 --delta 1e-6 --seed 1"
PRIVATE = {"epsilon": 1, "delta": 1e-6, "seed": 1}


def write_messy_file(file: Path) -> None:
    """A row a person: city, age, minutes, clicked, variant."""
    generator = np.random.default_rng(16)
    cities = generator.choice(list(CITIES), PEOPLE, p=list(CITIES.values()))
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["city", "age", "minutes", "clicked", "variant"])
        for city in cities.tolist():
            variant = "B" if generator.random() < 0.5 else "A"
            clicked = "" if generator.random() < 0.03 else int(generator.random() < (0.30 if variant == "A" else 0.38))
            age = 999 if generator.random() < 0.001 else int(np.clip(generator.normal(41, 15), 0, 110))
            minutes = 1e6 if generator.random() < 0.001 else round(float(generator.gamma(2, 12)), 1)
            writer.writerow(["" if generator.random() < 0.02 else city, age, minutes, clicked, variant])


def write_visits(file: Path) -> None:
    """A row a visit, several for most people."""
    generator = np.random.default_rng(17)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["person", "bought"])
        for person in range(1500):
            for _ in range(1 + generator.poisson(2)):
                writer.writerow([f"p{person}", int(generator.random() < 0.2)])


def job(title: str) -> None:
    print(f"\n{'=' * 100}\n{title}\n")


def shell(command: str) -> None:
    """Run a command as it would be typed, here without a process of its own."""
    print(f"$ shuffledp {command}")
    try:
        cli.main(shlex.split(command))
    except SystemExit as ended:
        if ended.code:
            raise


def main() -> None:
    write_messy_file(Path("people.csv"))
    write_visits(Path("visits.csv"))
    with Path("people.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    frame = {name: [row[name] or None for row in rows] for name in rows[0]}
    minutes = np.array(frame["minutes"], dtype=float)
    domain = shlex.quote('München,Köln,"Halle, ""Saale""",北京,القاهرة')

    job("1. How accurate will a count of 4,000 people be? No data is needed to know.")
    shell("plan binary-sum --users 4000 --epsilon 1 --delta 1e-6 -o plan.json")

    job("2. How many clicked? People without a value report 0, as they have not.")
    shell(f"sum people.csv --column clicked --missing default=0 {TARGET}")

    job("3. The same in Python, in one line.")
    clicked = [None if each is None else int(each) for each in frame["clicked"]]
    estimate = shuffledp.count(clicked, missing="default=0", **PRIVATE)
    print(estimate)
    print("the plan:", estimate.plan)

    job("4. Which cities? Names in any script; what is not in the public list is counted as elsewhere.")
    shell(
        f"histogram people.csv --column city --domain {domain} --other elsewhere --missing other {TARGET} -o cities.svg"
    )

    job("5. In Python: one city, and all of them.")
    names = ["München", "Köln", 'Halle, "Saale"', "北京", "القاهرة"]
    counts = shuffledp.histogram(frame, "city", categories=names, other="elsewhere", missing="other", **PRIVATE)
    print("北京:", counts["北京"])
    print({name: round(value) for name, value in counts.as_dict().items()})

    job("6. How long do people stay, on average? Some have a million minutes: they count as 240.")
    print(shuffledp.mean(minutes, low=0, high=240, clip=True, **PRIVATE), "minutes")

    job("7. The median age. Ages beyond 110 are brought to it.")
    shell(f"quantile people.csv --column age --domain 0:110 --clip {TARGET} -o ages.pdf")

    job("8. Which cities are frequent, if nobody can list them?")
    cities = shuffledp.heavy_hitters(
        frame, "city", missing="default=unknown", top=3, length=16, epsilon=4, delta=1e-6, seed=1
    )
    print(cities)
    print(f"a city of {cities.plan.surely_found:,.0f} people or more is found in 95% of runs")

    job("9. People come several times: how many visits ended in buying, if three visits of everybody count?")
    shell(f"sum visits.csv --column bought --user person --at-most 3 {TARGET}")

    job("10. Did variant B get more clicks than A? Which variant somebody saw stays private, too.")
    shell(f"difference people.csv --column clicked --missing default=0 --by variant --groups A,B {TARGET}")

    job("And why is that private? Who would have to work together to learn more?")
    shell("explain --plan plan.json")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        main()
