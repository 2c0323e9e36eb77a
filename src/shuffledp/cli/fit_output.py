"""What `shuffledp fit` tells a person, on the screen and in a report."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.fit_data import check_target_path
from shuffledp.cli.optimize import REHEARSED
from shuffledp.cli.said import YOUR_FILE
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.cli.said import Said
    from shuffledp.learn.optimize import Problem

UNPROTECTED = ("score", "baseline", "clipped", "curve")
"""Read from people's data without noise: for whoever holds the file, not for publication."""

_TOO_MUCH = 0.1

_LABELS_READ = "; not covered: which labels there are, which were read from the file (declare them with --classes)"

_ASK = "--count-clipped 200 asks so many people that instead, --with-truth shows it to whoever holds the file"

_SAY_ROWS, _SAY_TARGETS = "say with --bounds what features may be", "say with --target-bounds what they may be"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}}
th{{text-align:left;vertical-align:top;padding-right:1.5rem;font-weight:normal;color:#555}}svg{{max-width:100%;height:auto}}</style></head>
<body><h1>{title}</h1>
<table>{rows}</table>
<h2>How it learned</h2>
{curve}
<p>Curve, score and counts are read from the data without noise: they are for whoever holds the file, and
the guarantee does not cover them. It covers the model{but}.</p>
<h2>The model</h2>
<table>{coefficients}</table>
</body></html>
"""


def fit_facts(document: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """What happened, how accurate it is, how private, and what to look at; None where there is nothing to say."""
    people = document["users"]
    width = len(document["features"])
    learned = f"{document['estimator']} from {people:,} people's {width} features, by {document['solver']}"
    often = "once" if document["rounds_per_user"] == 1 else f"in {document['rounds_per_user']:,} rounds"
    covered = "" if "classes" not in document["unprotected"] else _LABELS_READ
    return [
        ("learned", learned),
        *_measured(document),
        *_counted(document),
        ("expected", _expected(document)),
        ("more than noise", _beside_noise(document)),
        *(("look at", words) for words in document["warnings"]),
        ("solver", _CHOSEN[document["chosen_by"]]),
        (
            "privacy",
            f"epsilon {document['epsilon']:g}, delta {document['delta']:g} for every row, {document['model']} model: "
            f"trusted are shufflers, and {document['honest_fraction']:.0%} of the people of every cohort{covered}",
        ),
        ("rounds", f"{document['rounds']:,}, of {document['users_per_round']:,} people or more"),
        ("each person", f"is asked {often} and sends at most {document['messages_per_user']:,} messages"),
        ("seeded", "a simulation: its noise can be repeated, so it protects nobody" if document["simulated"] else None),
        *((name, _text(document.get(key))) for name, key in _FILES),
    ]


_CHOSEN = {
    "simulation": "the best in rehearsals on synthetic people of this shape, which spend nothing",
    "bound": "the one with the least proved bound",
    "name": None,
}


def _expected(document: Mapping[str, Any]) -> str | None:
    """What rehearsals let one expect at this size; None where there are none."""
    found = document["expected"]
    if found is None:
        return None
    nothing = (
        f"{found['in_vain']} of {found['runs']} runs learn nothing" if found["in_vain"] else "no run learns nothing"
    )
    return (
        f"{found['part']:.0%} of the best constant's loss in rehearsals at this size, {found['low']:.0%} to "
        f"{found['high']:.0%} in 8 of 10; {nothing}"
    )


def _beside_noise(document: Mapping[str, Any]) -> str | None:
    """Whether the model can be told from noise, where that was looked at and no warning says so already."""
    found = document["beside_noise"]
    if found is None or found["cannot_be_told_from_noise"]:
        return None
    return f"yes: weights are {found['length']:.3g} long, and up to {found['longest']:.3g} where features say nothing"


_FILES = (("model", "written"), ("picture", "picture"), ("report", "report"))


def _text(path: Any) -> str | None:
    return None if path is None else str(path)


def _counted(document: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """What a private count says of what was clipped, and what to do about too much of it."""
    told: list[tuple[str, str | None]] = []
    if not document["clipped_shares"] and document["clipped"] is None:
        enough = document["clipped_counted_from"]
        when = "nobody was asked" if enough is None else f"it is from {enough:,} people on"
        told.append(("cut or shortened", f"not counted ({when}): bounds that are far off pass without a word. {_ASK}"))
    for each in document["clipped_shares"]:
        share = f"{each['share']:.0%} of {each['what']}, {each['low']:.0%} to {each['high']:.0%}"
        told.append(("cut or shortened", f"{share}: a private count of {each['users']:,} people"))
        if each["low"] > _TOO_MUCH:
            way_out = _SAY_ROWS if each["what"] == "rows" else _SAY_TARGETS
            told.append(("look at", f"{each['what']} cannot have met what was declared: {way_out}"))
    return told


def _measured(document: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """What was read from people's rows without noise, if somebody asked for it; else what is proved, and how to ask."""
    clipped, held, many = document["clipped"], document["held_out"], document["users"] // 10
    if clipped is None:
        from shuffledp.learn.optimize.vacuous import PROVES_NOTHING

        bound = document["bound"]
        proved = "no bound is proved where gradients are clipped, or of the solver conditioned"
        if bound is not None:
            proved = f"at most {bound:.3g} above the least mean loss, in expectation"
            if document["bound_proves_nothing"]:
                proved += f", {PROVES_NOTHING}"
        return [("how accurate", f"{proved}; --with-truth measures it on rows kept out, not for publication")]
    where = f"on {held:,} rows kept out" if held else "on the rows it learned from"
    if document["task"] == "classification":
        score = f"{document['score']:.1%} right {where}; always the commoner class: {document['baseline']:.1%}"
    else:
        score = f"R² {document['score']:.3f} {where}; 0 is always the mean"
    return [
        ("how accurate", f"{score} (not private: for you, not for publication)"),
        ("clipped", ", ".join(f"{count:,} {what}" for what, count in clipped.items())),
        ("look at", "many rows were clipped: " + _SAY_ROWS if clipped["rows"] > many else None),
        ("look at", "many targets were clipped: " + _SAY_TARGETS if clipped["targets"] > many else None),
    ]


def fit_next(document: Mapping[str, Any], said: "Said", file: Path, problem: "Problem") -> list[tuple[str, str | None]]:
    """Commands to go on with, with the same options, and what they spend."""
    spends = "" if document["simulated"] else f" (spends epsilon {document['epsilon']:g} again)"
    smooth = "" if problem.smoothness is None else f" --smooth {problem.smoothness!r}"
    strong = "" if problem.curvature == 0 else f" --strong {problem.curvature!r}"
    name = str((problem.loss or {}).get("loss"))
    compared = (
        f"plan optimize --users {problem.users} --dimension {problem.dimension} --radius {problem.domain.reach!r} "
        f"--lipschitz {problem.lipschitz!r}{smooth}{strong} --linear {'' if problem.has_prox else '--no-proximal '}"
        f"{'' if problem.visits is None else f'--visits {problem.visits} '}--rounds-allowed {problem.rounds} "
        f"--honest-fraction {problem.honest_fraction} "
        f"--epsilon {document['epsilon']} --delta {document['delta']} --solver {document['solver']}"
        f"{f' --loss {name}' if name in REHEARSED else ''}"
    )
    model = _text(document.get("written"))
    measured = document["clipped"] is not None
    kept = ("out", "picture", "report")
    read = said.only("missing", "delimiter", "decimal", "encoding")
    use = judge = None
    if model is not None:
        use = f"predict {shlex.quote(str(file))} --model {shlex.quote(model)}{read} --csv said.csv"
    if model is not None and document["task"] == "classification":
        target = (
            f"--target {shlex.quote(document['target'])} --epsilon {document['epsilon']} --delta {document['delta']}"
        )
        judge = f"evaluate {shlex.quote(model)} {YOUR_FILE} {target}{read}"
    return [
        ("compare solvers", compared),
        ("use it", use),
        ("how good it is, by people kept out", judge),
        (f"keep a model{spends}", None if model else said.again("-o model.json", without=kept)),
        (
            f"ask people often{spends}",
            None if problem.visits is None else said.again("--interactive", without=(*kept, "solver")),
        ),
        (
            f"see how one learns{spends}",
            None
            if document.get("report")
            else said.again("--report report.html", *([] if measured else ["--with-truth"]), without=kept),
        ),
    ]


def check_report_path(path: Path) -> None:
    """Refuse a name that no report can be written to, and a curve in it that cannot be drawn, before any work."""
    from shuffledp.pictures.curves import new_figure

    if path.suffix.lower() != ".html":
        raise ParameterError("report", str(path), "must end in .html", "name a page; --picture draws the curve alone")
    check_target_path("report", path)
    new_figure(path, width=1)


def writer(path: Path, document: Mapping[str, Any], curves: Mapping[str, Sequence[float]]) -> Callable[[], None]:
    """What writes a report or draws its curve: all that can fail but the disk has been done before."""
    from shuffledp.pictures.learning import draw_learning_curve, learning_curve_svg
    from shuffledp.tables.whole import write_text_whole

    rounds = document["curve"]["rounds"]
    title = f"{document['estimator']} of {document['target']}: epsilon {document['epsilon']:g}"
    if path.suffix.lower() != ".html":
        return lambda: draw_learning_curve(path, rounds, curves, title)
    named = _coefficients(document)
    text = _PAGE.format(
        title=escape(title),
        rows=_rows(fit_facts(document)),
        curve=learning_curve_svg(rounds, curves, title),
        but=", not which labels there are" if "classes" in document["unprotected"] else "",
        coefficients=_rows([(name, f"{number:.6g}") for name, number in named]),
    )
    return lambda: write_text_whole(path, text)


def _coefficients(document: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Every coefficient by the name of its column, and of its class where there are more than two."""
    columns, coefficients, intercept = document["columns"], document["coefficients"], document["intercept"]
    if not isinstance(intercept, list):
        return [*zip(columns, coefficients, strict=True), ("intercept", intercept)]
    return [
        (f"{label}: {name}", number)
        for label, row, constant in zip(document["classes"], coefficients, intercept, strict=True)
        for name, number in [*zip(columns, row, strict=True), ("intercept", constant)]
    ]


def _rows(rows: Iterable[tuple[str, str | None]]) -> str:
    said = ((escape(name), escape(value)) for name, value in rows if value is not None)
    return "\n".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in said)
