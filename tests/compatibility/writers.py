"""Where the package writes files and names versions, read from its source: nothing new may be kept without a record."""

import ast
import re
from functools import cache
from pathlib import Path

import shuffledp

SOURCE = Path(shuffledp.__file__).parent
_LABEL = re.compile(r"(^|_)(SCHEMA|VERSION|LABEL)$|^WITH_")
_WRITERS = {
    *("whole_file", "write_text_whole", "write_secret", "put_file", "make_folder", "create_part"),
    *("SqliteStore", "write_text", "write_bytes", "write_table", "ParquetWriter", "save", "savez", "savefig", "dump"),
}
_PERHAPS = re.compile(rf"^\w*(SCHEMA|VERSION|LABEL|WITH_\w+) = |\b(open|{'|'.join(sorted(_WRITERS))})\(", re.M)
_MODE = re.compile(r"[wax]b?\+?|r\+b|rb\+|r\+")


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Every module of the package that may name a version or write a file, by its path."""
    texts = ((path, path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py")))
    # Reading is quick, parsing is not.
    some = ((path, text) for path, text in texts if _PERHAPS.search(text))
    return tuple((path.relative_to(SOURCE).as_posix(), ast.parse(text)) for path, text in some)


def labels() -> set[str]:
    """Every constant that names a version, as `module:NAME`."""
    return {
        f"{module}:{target.id}"
        for module, tree in modules()
        for statement in tree.body
        if isinstance(statement, ast.Assign) and not _is_sql(statement.value)
        for target in statement.targets
        if isinstance(target, ast.Name) and _LABEL.search(target.id)
    }


def _is_sql(value: ast.expr) -> bool:
    return "CREATE TABLE" in ast.unparse(value)


def writing() -> set[str]:
    """Every module that calls something which writes a file."""
    return {module for module, tree in modules() for call in ast.walk(tree) if _writes(call)}


def _writes(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name == "open":
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        modes = (each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))
        of_system = isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "os"
        return of_system or any(map(_MODE.fullmatch, modes))
    return name in _WRITERS


# --- what is known ---------------------------------------------------------------------------------------------------

LABELS: dict[str, tuple[str, ...]] = {
    "accounting/ledger.py:SCHEMA": ("ledger",),
    "cli/token.py:_VERSION": ("tokens that wait",),
    "engines/sweeping.py:_SCHEMA": ("sweep",),
    "jobs/job.py:SCHEMA": ("job",),
    "jobs/manifest.py:SCHEMA": ("data set",),
    "learn/estimators/models.py:SCHEMA": ("model",),
    "protocols/plan.py:SCHEMA": ("plan",),
    "protocols/states.py:SCHEMA": ("state", "state of a campaign"),
    "service/admission/issuing.py:LABEL": ("issuer's store",),
    "service/analyzer/results.py:VERSION": ("result of a piece",),
    "service/ended.py:VERSION": ("ended task",),
    "service/expiry.py:EXPIRING_VERSION": ("task",),
    "service/hops.py:ADMISSION_VERSION": ("task", "routing"),
    "service/hops.py:CASCADE_VERSION": ("task of a cascade", "routing"),
    "service/keys.py:VERSION": (
        *("secret key", "signing key", "gateway's key", "hop's key", "tasks created", "keys retired"),
        *("issuer's key", "issuer's public key"),
    ),
    "service/keys.py:WITH_EXPIRY": ("public key",),
    "service/keys.py:WITH_OLDER": ("role tokens",),
    "service/models.py:VERSION": ("signed model",),
    "service/store/sqlite/analyzer.py:LABEL": ("analyzer's store",),
    "service/store/sqlite/outbox.py:LABEL": ("outbox",),
    "service/store/sqlite/shuffler.py:LABEL": ("shuffler's store",),
    "service/wire.py:VERSION": ("task", "campaign", "routing", "routing of rounds"),
}
"""Versions that stand in files: each names its files in `later.LATER_FILES`."""

NOT_KEPT: dict[str, str] = {
    "service/analyzer/leasing.py:VERSION": "between an analyzer and whoever opens pieces for it",
    "service/delivery.py:VERSION": "between a shuffler and an analyzer",
    "service/fill.py:VERSION": "between servers and a page",
}
"""Versions of what is never in a file."""

KEPT_BY: dict[str, tuple[str, ...]] = {
    "accounting/ledger.py": ("ledger",),
    "cli/campaign_making.py": ("campaign",),
    "cli/campaign_model.py": ("signed model", "model"),
    "cli/fit.py": ("model",),
    "cli/output.py": ("plan",),
    "cli/serve.py": ("stores",),
    "cli/task.py": ("task",),
    "cli/token.py": ("tokens and an issuer",),
    "engines/sweeping.py": ("sweep",),
    "jobs/job.py": ("job",),
    "jobs/manifest.py": ("data set",),
    "jobs/writing.py": ("data set",),
    "learn/estimators/models.py": ("model",),
    "service/admission/issuer_keys.py": ("tokens and an issuer",),
    "service/admission/issuing.py": ("tokens and an issuer",),
    "service/campaign.py": ("campaign",),
    "service/keys.py": ("keys",),
    "service/oblivious/gateway_keys.py": ("keys",),
    "service/rotation.py": ("keys", "notes beside keys"),
    "service/store/sqlite/__init__.py": ("stores",),
    "service/store/sqlite/engine.py": ("stores",),
    "service/store/sqlite/outbox.py": ("stores",),
    "service/task.py": ("task",),
}
"""Modules that write what a user keeps, and the kinds in `meaning.MEANINGS` that it is."""

OTHERWISE: dict[str, str] = {
    "cli/compare.py": "a page to look at",
    "cli/demo.py": "made-up values for one run",
    "cli/demo_people.py": "made-up values for one run",
    "cli/demo_servers.py": "logs",
    "cli/experiment_shared.py": "tables as others read them",
    "cli/fit_output.py": "a predictions' table, or an answer as JSON, which no command reads",
    "cli/kept.py": "answers as JSON and tables, which no command reads",
    "engines/spilling.py": "what a running job has in hand",
    "experiments/resumed.py": "rows of an experiment, measured again where they do not fit",
    "experiments/survey/picture.py": "pictures",
    "files.py": "what the others call",
    "pictures/curves.py": "pictures",
    "pictures/learning.py": "pictures",
    "service/analyzer/app.py": "an answer over HTTP",
    "service/store/postgresql/keys.py": "32 bytes a key, beside a store that migrations number",
    "tables/growing.py": "tables as others read them",
    "tables/whole.py": "what the others call",
    "tables/written.py": "tables as others read them",
}
"""Modules that write what no later version has to read."""
