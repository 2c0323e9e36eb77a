"""What hangs in the gallery: every figure and table of the papers that a command draws, and the paper's own numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Rows = tuple[Sequence[str], list[list[str]]]


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper.

    Attributes:
        name: of its picture, and of its rows where they are kept.
        title: which figure or table it is.
        says: what the paper prints.
        command: what is typed after `shuffledp`; a picture's name is added.
        rows: a table from what the command prints as JSON: the paper's number beside ours.
        draws: the file that the command writes, by its ending: "png", a page with a picture in it, or nothing.
        sees: what one sees, where the measurement does not say it itself.
    """

    name: str
    title: str
    says: str
    command: str
    rows: Callable[[Any], Rows]
    draws: str = "png"
    sees: str = ""

    @property
    def words(self) -> list[str]:
        """The command with the file that it draws."""
        option = {"png": ["--picture", f"{self.name}.png"], "html": ["-o", f"{self.name}.html"]}.get(self.draws, [])
        return [*self.command.split(), *option]


def slope(row: Any, name: str = "slope") -> str:
    return f"{row[name]:.2f} ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"


def counters(found: Any) -> Rows:
    headings = ("shufflers", "the paper's exponent", "error on its hard input", "without the logarithm", "our bound")
    return headings, [
        [
            str(row["shufflers"]),
            f"1/{2 * row['shufflers'] + 1} = {row['theory']:.3f}",
            slope(row),
            slope(row, "slope_without_log"),
            slope(row, "bound_slope_without_log"),
        ]
        for row in found["slopes"]
    ]


def schedule(found: Any) -> Rows:
    reference = found["reference"]
    return ("all answers within", ""), [
        ["the paper's Algorithm 3, its constants", f"{reference['paper_error_bound']:,.0f}"],
        ["this plan", f"{found['error_bound']:,.0f}"],
        ["the strongest curator known", f"{reference['central_error_bound']:,.1f}"],
    ]


def rates(found: Any) -> Rows:
    headings = ("loss", "solver", "the paper's exponent of n", "measured (95%)")
    return headings, [
        [row["setting"], f"`{row['solver']}`", f"{row['theory']:.2f}", slope(row)] for row in found["rows"]
    ]


def regrets(found: Any) -> Rows:
    rows = found["rows"]
    asked = list(dict.fromkeys((row["dimension"], row["epsilon"]) for row in rows if row["epsilon"] is not None))
    cells = {(row["policy"], row["dimension"], row["epsilon"]): row for row in rows}

    def cell(policy: str, dimension: int, epsilon: float) -> str:
        row = cells.get((policy, dimension, epsilon), cells.get((policy, dimension, None)))
        return "" if row is None else f"{row['regret_mean']:,.0f} ± {row['regret_standard_error']:,.0f}"

    headings = ("policy", "in the paper", *(f"d {dimension}, ε {epsilon:g}" for dimension, epsilon in asked))
    return headings, [
        [f"`{policy}`", _IN_THE_PAPER.get(policy, "–"), *(cell(policy, *each) for each in asked)]
        for policy in dict.fromkeys(row["policy"] for row in rows)
    ]


_IN_THE_PAPER = {
    "linucb": "LinUCB",
    "jdp-tree": "LinUCB-JDP",
    "shuffle-amp": "LinUCB-SDP-Amp",
    "shuffle-vec": "LinUCB-SDP-Vec",
    "ldp": "LinUCB-LDP",
}


def growth(found: Any) -> Rows:
    headings = ("policy", "the papers' exponent of T, at worst", "measured (95%)", "of the proved bound")
    return headings, [
        [f"`{row['policy']}`", f"{row['theory']:.2f}", slope(row), slope(row, "bound_slope")] for row in found["slopes"]
    ]


def arms(found: Any) -> Rows:
    headings = ("regret that privacy adds, against", "the paper's exponent", "measured (95%)")
    return headings, [
        [row["against"], f"{row['theory']:g}", f"{row['exponent']:.2f} ({row['low']:.2f} to {row['high']:.2f})"]
        for row in found["exponents"]
    ]


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def lines(found: Any) -> Rows:
    """Of a table of the survey whose rows are rates: the largest size, and the exponent beside the survey's."""
    headings = ("problem", "the survey says", "protocol", "at the largest", "exponent", "the survey's")
    body = []
    for row in found["tables"][0]["rows"]:
        said = "; ".join(f"{model}: {rate}" for model, rate in row["survey"].items() if rate)
        for line in row["lines"]:
            fit, last = line["exponent"], line["points"][-1]
            claimed = "" if fit is None or fit["claimed"] is None else f"{fit['claimed']:.2f}"
            against = f"{number(last['value'])} at {line['against']} {number(line['x'][-1])}"
            body.append([row["name"], said, f"{line['model']}: {line['name']}", against, _fitted(fit), claimed])
    return headings, _said_once(body)


def _fitted(fit: Any) -> str:
    return "" if fit is None else f"{fit['value']:.2f} ({fit['low']:.2f} to {fit['high']:.2f})"


def _said_once(body: list[list[str]]) -> list[list[str]]:
    """What stands in the first two columns is not written again below itself."""
    before: list[str] = []
    found = []
    for row in body:
        found.append([*("" if row[:2] == before else cell for cell in row[:2]), *row[2:]])
        before = row[:2]
    return found


def cells(*names: str) -> Callable[[Any], Rows]:
    """Of a table of the survey whose rows are methods: some columns of ours beside the survey's."""

    def read(found: Any) -> Rows:
        table = found["tables"][0]
        said = list(dict.fromkeys(name for row in table["rows"] for name in row["survey"]))
        headings = ("", *(f"survey: {name.lower()}" for name in said), *names)
        body = [
            [row["name"], *(row["survey"].get(name, "") for name in said), *(_cell(row["cells"].get(n)) for n in names)]
            for row in table["rows"]
        ]
        return headings, body

    return read


def _cell(cell: Any) -> str:
    if isinstance(cell, dict):
        return number(cell["value"])
    return "–" if cell is None else number(cell) if isinstance(cell, int | float) else str(cell)


def chased(found: Any) -> Rows:
    headings = ("length", "users, with a shuffler", "messages a user", "users, local model, one round")
    by = {(row["model"], row["length"]): row for row in found["rows"]}
    return headings, [
        [
            str(length),
            str(by["shuffle", length]["users"]),
            f"{by['shuffle', length]['messages_per_user']:,.0f}",
            str(by["local", length]["users"]),
        ]
        for length in sorted({row["length"] for row in found["rows"]})
    ]


def masked(found: Any) -> Rows:
    return ("", ""), [
        ["messages in round 1, for keys", f"{found['messages_round_1']:,}"],
        ["messages in round 2", f"{found['messages_round_2']:,}"],
        ["keys fail with probability", f"{found['failure_probability']:.1e} at most"],
        ["standard error, a curator's own", f"{found['standard_error']:.3f}"],
    ]


def amplified(found: Any) -> Rows:
    return ("bound", "epsilon of the shuffled reports", "kind"), [
        [row["name"], "–" if row["epsilon"] is None else f"{row['epsilon']:.4f}", row["kind"]]
        for row in found["bounds"]
    ]


EXHIBITS = (
    Exhibit(
        "schedule",
        "Paper 000, Figures 1 and 2: batches of concurrent shufflers",
        "Trees whose levels are batches; Figure 2 has two shufflers. The error is O(n^(1/(2k+1))).",
        "plan counter --users 1000000 --shufflers 4 --epsilon 1 --delta 1e-6 --noise laplace",
        schedule,
        sees="Each row is a shuffler, each block a batch. Every user is in at most one open batch of each.",
    ),
    Exhibit(
        "counter",
        "Paper 000, Theorems 3.4 and 4.1: the error of a running count grows like n^(1/(2k+1))",
        "n^(1/(2k+1)) up to logarithms, from above and from below, for k shufflers.",
        "papers counter --largest 1000000 --runs 60",
        counters,
        sees="The more shufflers, the flatter; what is left above the theory is its logarithm.",
    ),
    Exhibit(
        "rates",
        "Paper 001, Table 1: what privacy costs in convex optimization",
        "Excess loss of n^(-2/3), n^(-4/5), n^(-4/3) and n^(-2) asked once, n^(-1) and n^(-2) asked always.",
        "papers convex --largest 100000 --instances 10",
        rates,
        sees="Ten runs a point, so that intervals are wide; forty, and why some slopes differ, are on the theory page.",
    ),
    Exhibit(
        "linucb-1",
        "Paper 002, Figure 1: regret of linear bandits, dimension 5",
        "Curves only, for ε 0.2, 1 and 10: shuffled ones between JDP and LDP; its code's noise is not its theorems'.",
        "papers linucb --figure 1",
        regrets,
        sees="With proved noise Vec lies between, Amp on the local model; four shufflers lie on the best curator.",
    ),
    Exhibit(
        "linucb-2",
        "Paper 002, Figure 2: the same in dimensions 10 and 15",
        "Curves only, for ε 1: the same order.",
        "papers linucb --figure 2 --instances 20",
        regrets,
        sees="The same order again; in 15 dimensions 20,000 users are few, and one shuffler gains less.",
    ),
    Exhibit(
        "growth",
        "Papers 000 and 002: how regret grows with the users",
        "At worst T^(3/4) locally, T^(3/5) with one shuffler, T^(1/2) with many.",
        "papers linucb --scaling --largest 100000 --instances 10",
        growth,
        sees="The order is the theory's; with a shuffler regret grows more slowly here than at worst.",
    ),
    Exhibit(
        "arms",
        "Paper 003, Theorem 3.3: regret of arm elimination",
        "Privacy adds O(k log T / ε).",
        "papers arms --largest 100000 --instances 40",
        arms,
    ),
    *(
        Exhibit(
            f"survey-{place}", f"Paper 004, Table {place}: {title}", "", f"papers compare --table {place}", rows, "html"
        )
        for place, (title, rows) in enumerate(
            (
                ("local and shuffle, four problems", lines),
                ("binary sums", cells("error", "messages a user", "δ", "zero kept")),
                ("robust shuffle and central privacy", lines),
                ("sequential interaction", lines),
                (
                    "histograms",
                    cells("d = 1,000: worst bin", "d = 1,000: messages a user", "d = 1,000,000: worst bin"),
                ),
                (
                    "range queries",
                    cells(
                        "d = 1, k = 65,536: worst range",
                        "d = 1, k = 65,536: claimed",
                        "d = 1, k = 65,536: messages a user",
                        "d = 2, k = 256: worst range",
                    ),
                ),
            ),
            start=1,
        )
    ),
    Exhibit(
        "pointers",
        "Paper 004, Theorems 17 and 18: pointer chasing",
        "In one local round Ω(l) users; with a shuffler O(log(1/δ)/ε²), whatever l is.",
        "papers pointer-chasing",
        chased,
        "",
        sees="Fewest users for two thirds of 200 runs. The messages are the price: they grow with l!.",
    ),
    Exhibit(
        "secure-sum",
        "Paper 004, section 5.2: any central protocol in two rounds",
        "A first round of key exchange by shuffling, a second one of masked values.",
        "papers secure-sum",
        masked,
        "",
        sees="Twenty people; a demonstration, as one dropout voids it.",
    ),
    Exhibit(
        "amplification",
        "Paper 004, section 2.2: amplification by shuffling",
        "Shuffled reports of local epsilon 1 have a far smaller epsilon: every known bound, side by side.",
        "papers amplify --local-epsilon 1 --users 10000 --delta 1e-6 --symbols 4",
        amplified,
        "",
        sees="Closed formulas are five to six times the lower bound of all; the stronger clones are a fifth above it.",
    ),
)
