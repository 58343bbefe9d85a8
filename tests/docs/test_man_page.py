"""The man page."""

import re
import subprocess
import sys
from pathlib import Path

from smartfeeds.cli import main
from smartfeeds.console import EXIT_TEXTS
from support.shell import commands

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import man_page  # noqa: E402 - the tools are no package


def test_man_page_is_what_the_tool_writes() -> None:
    """`make docs` writes it."""
    assert man_page.PAGE.read_text() == man_page.page()


def test_man_page_can_be_formatted_and_names_every_command_option_and_exit_code() -> None:
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tascii", "-P-c", man_page.PAGE], capture_output=True, text=True, check=True
    )
    shown = re.sub(".\b", "", done.stdout)  # letters in bold are written twice
    lines = [" ".join(line.split()) for line in shown.splitlines()]

    assert done.stderr == ""
    for command in commands(main):
        assert any(line.startswith(f"{command} [OPTIONS]") for line in lines), command
    for code in EXIT_TEXTS:
        assert any(re.match(rf"{int(code)}\b", line) for line in lines), code
    assert any(line.startswith("--allow-private") for line in lines)
