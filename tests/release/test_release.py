"""What a release is made of: files that strangers' tools accept, a long description whose links lead somewhere."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def script(name: str) -> ModuleType:
    """A script of the folder `release`, as a module."""
    spec = importlib.util.spec_from_file_location(f"release_{name}", ROOT / "release" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def accepted(*words: object) -> subprocess.CompletedProcess[str]:
    """What a checker of files says; it must be there."""
    return subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.compose-spec": sorted((ROOT / "examples/deploy/compose").glob("*.yaml")),
    "vendor.github-issue-forms": [
        ROOT / ".github/ISSUE_TEMPLATE" / f"{name}.yml" for name in ("question", "wrong-answer")
    ],
    "vendor.github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_are_of_their_schemas(schema: str) -> None:
    assert SCHEMAS[schema]
    done = accepted(BIN / "check-jsonschema", "--builtin-schema", schema, *SCHEMAS[schema])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yaml"
    wrong.write_text("services: {shuffler: {image: 3}}\n")
    assert accepted(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", wrong).returncode == 1


def test_workflows_give_nobody_more_than_they_need() -> None:
    done = accepted(BIN / "zizmor", "--offline", "--no-progress", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in WORKFLOWS:
        text = path.read_text()
        # A tag can be moved, a commit cannot; and nothing is published with a password.
        assert all(re.fullmatch(r"[0-9a-f]{40} # v[\d.]+", each) for each in re.findall(r"uses: [\w/-]+@(.*)", text))
        assert "secrets." not in text and text.count("timeout-minutes") == text.count("runs-on")


def test_the_container_is_one_that_a_linter_passes() -> None:
    file = ROOT / "examples/deploy/compose/Dockerfile"
    done = accepted(BIN / "hadolint", file)
    assert done.returncode == 0, done.stdout
    text = file.read_text()
    assert "dist/*.whl" in text and re.search(r"^USER \d+$", text, re.MULTILINE)
    for compose in SCHEMAS["vendor.compose-spec"]:
        assert "read_only: true" in compose.read_text() and "cap_drop: [ALL]" in compose.read_text()


def long_description() -> str:
    """The README with the substitutions that the build makes."""
    text = (ROOT / "README.md").read_text()
    for each in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def test_links_of_the_long_description_lead_to_files() -> None:
    make = script("make")
    linked = make.linked(long_description())
    assert len(linked) > 10
    assert [path for path in linked if not (ROOT / path).exists()] == []
    with pytest.raises(make.ReleaseError, match=re.escape("docs/nowhere.md")):
        make.linked("see [this](docs/nowhere.md)")


def test_the_long_description_installs_from_the_index_and_asks_for_no_folder() -> None:
    text = long_description()
    assert "pip install 'shuffledp[tables,pictures]'" in text and "\n    uvx shuffledp demo " in text
    assert "pip install '." not in text and "--from ." not in text
    # The histogram's people are fetched from where the README's own folder has them.
    (fetched,) = re.findall(r"curl --create-dirs -o (\S+) \S+/v\$HFPR_VERSION/(\S+)", text)
    assert fetched[0] == fetched[1] and (ROOT / fetched[0]).is_file() and f"shuffledp histogram {fetched[0]}" in text


def test_whoever_unpacks_the_source_has_what_the_documentation_and_the_tests_read() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for page in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"^```\{file\} (\S+)$", page.read_text(), re.MULTILINE):
            assert name in included, f"{page.name} shows {name}"
    assert {"release", ".github", "CITATION.cff", "constraints.txt"} <= set(included)


def test_which_versions_may_break_what() -> None:
    may_break = script("interface").may_break
    assert [may_break("0.1.4", each) for each in ("0.1.5", "0.2.0", "1.0.0")] == [False, True, True]
    assert [may_break("1.4.0", each) for each in ("1.4.1", "1.5.0", "2.0.0")] == [False, False, True]


def test_every_python_that_is_named_is_tried() -> None:
    named = {each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", each)}
    assert named == set(script("versions").PYTHONS)
    tried = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/test.yaml").read_text())
    assert tried is not None and set(re.findall(r"[\d.]+", tried[1])) == named


def test_what_is_needed_has_a_pin_and_the_pin_is_allowed() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [
        *PROJECT["project"]["dependencies"],
        *(each for name, listed in extras.items() if name != "dev" for each in listed),
    ]
    for requirement in map(Requirement, asked):
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} has no pin in constraints.txt"
        assert pins[name] in requirement.specifier, f"{name} {pins[name]} is none of {requirement.specifier}"
