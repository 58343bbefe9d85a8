"""Builds docs/smartfeeds.1, the man page of the program, from the help texts of its commands.

`python tools/man_page.py` writes the page, `--check` ends with 1 if it is not current. The package installs the page.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from smartfeeds import __version__
from smartfeeds.cli import main as program
from smartfeeds.console import EXIT_TEXTS

PAGE = Path(__file__).parents[1] / "docs/smartfeeds.1"

_DESCRIPTION = """\
smartfeeds is a publish\\-subscribe service for XMPP. It runs beside a Prosody or ejabberd server as an external
component (XEP\\-0114) and serves Smart Feeds over XMPP and over HTTP: feeds whose followers can prove that they have
every item."""
_FILES = (
    ("smartfeeds.toml", "The configuration, in the current folder or named by \\fB\\-\\-config\\fR."),
    ("smartfeeds.db", "The database. A relative path in store.url is relative to the configuration file."),
)
_ENVIRONMENT = (
    ("SMARTFEEDS_CONFIG", "The path of the configuration."),
    ("SMARTFEEDS_SECTION__KEY", "The value of a setting, such as SMARTFEEDS_COMPONENT__PORT; it overrides the file."),
)


def escaped(text: str) -> str:
    """Returns a text for roff: backslashes and hyphens are escaped, and no line begins with a control character."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def page() -> str:
    """Returns the man page."""
    # With the settings of the program: click gives each command its help option once, for the life of the process.
    context = click.Context(program, info_name="smartfeeds", **program.context_settings)
    lines = [
        '.\\" Written by tools/man_page.py from the help texts of the commands.',
        f'.TH SMARTFEEDS 1 "" "smartfeeds {__version__}" "User Commands"',
        ".SH NAME",
        "smartfeeds \\- publish\\-subscribe service for XMPP with Smart Feeds",
        ".SH SYNOPSIS",
        ".B smartfeeds",
        "[\\-\\-version] [\\-\\-help] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]",
        ".SH DESCRIPTION",
        _DESCRIPTION,
        ".SH COMMANDS",
        *_commands(program, context),
        ".SH EXIT STATUS",
        *_terms((str(int(code)), escaped(text)) for code, text in EXIT_TEXTS.items()),
        ".SH ENVIRONMENT",
        *_terms(_ENVIRONMENT),
        ".SH FILES",
        *_terms(_FILES),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yields the sections of all commands below a group."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _commands(command, inner)
        elif not command.hidden:
            yield from _command(command, inner)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f'.SS "{escaped(" ".join([context.command_path, *command.collect_usage_pieces(context)]))}"'
    paragraphs = (command.help or "").replace("\b\n", "").strip().split("\n\n")
    yield "\n.PP\n".join(escaped(" ".join(paragraph.split())) for paragraph in paragraphs)
    records = (
        parameter.get_help_record(context) for parameter in command.params if isinstance(parameter, click.Option)
    )
    yield from _terms((f"\\fB{escaped(term)}\\fR", escaped(text)) for term, text in filter(None, records))


def _terms(terms: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in terms:
        yield from (".TP", term, text)


def run() -> int:
    """Writes the page, or checks it."""
    if "--check" in sys.argv[1:]:
        return PAGE.read_text() != page()
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(run())
