"""The command line, called in this process."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shuffledp import cli


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Call a command: its exit code, and what it wrote to standard output and standard error."""

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


@pytest.fixture
def asked(run: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    """Call a command with --json: the object that it writes, strict JSON and nothing else, under this exit code."""

    def call(*words: object, code: int = 0) -> Any:
        found, out, err = run(*words, "--json")
        assert found == code and err == "", (found, words, out, err)
        return json.loads(out, parse_constant=lambda word: pytest.fail(word))

    return call
