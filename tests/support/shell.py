"""Commands as a shell runs them, in this process: in a folder, with an environment that configures nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from smartfeeds.cli import main

Run = Callable[..., Result]


def shell_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in the folder; it has to end with `code`."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith("SMARTFEEDS_"):
            monkeypatch.delenv(name)

    def invoke(*arguments: str, code: int = 0, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(main, arguments, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke
