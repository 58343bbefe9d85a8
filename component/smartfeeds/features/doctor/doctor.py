"""`smartfeeds doctor`: checks the configuration, the database and the XMPP server, and gives advice."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from smartfeeds.cli.common import config_file, config_option, json_option, read_settings
from smartfeeds.console import exit_failed_if, print_json, run_async
from smartfeeds.features.doctor.findings import CheckState, Finding
from smartfeeds.lists import folded

if TYPE_CHECKING:
    from smartfeeds.app.config import Settings

_STYLES: Final[dict[CheckState, dict[str, Any]]] = {
    CheckState.OK: {"fg": "green"},
    CheckState.NOTE: {"fg": "yellow"},
    CheckState.FIX: {"fg": "red", "bold": True},
}


@click.command("doctor")
@config_option
@json_option
def doctor_command(config: Path | None, *, as_json: bool) -> None:
    """Connect as the component and check everything that the service needs; exit code 1 if something must be fixed.

    The checks cover the secret, the database and its disk, HTTP and its public address, DNS records, the handshake, the
    software of the server, the clocks, the largest stanza that the server accepts, a second connection, and connections
    from other servers. Stop the service first: Prosody accepts one connection only, and ejabberd would distribute
    stanzas over both connections during the check.
    """
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.CRITICAL)  # the table shows the failures already
    try:
        findings = run_async(_collect(read_settings(config), config_file(config)))
    finally:
        root.setLevel(level)
    if as_json:
        print_json([_json_of(finding) for finding in findings])
    else:
        _print(findings)
    exit_failed_if(any(finding.state is CheckState.FIX for finding in findings))


async def _collect(settings: "Settings", config: Path | None) -> list[Finding]:
    from smartfeeds.features.doctor.probe import check_all
    from smartfeeds.terminal import err

    findings = []
    with err.status("checking"):
        async for finding in check_all(settings, config):
            findings.append(finding)  # noqa: PERF401 - each check takes time; the status line shows that work goes on
    return findings


def _json_of(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "state": finding.state.value,
        "found": finding.text,
        "advice": finding.advice,
    }


def _print(findings: list[Finding]) -> None:
    states = max(len(state.value) for state in CheckState)
    checks = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        head = f"{finding.state.value:{states}}  {finding.check:{checks}}  "
        first, *rest = folded(finding.text, head, len(head))
        click.echo(click.style(first[:states], **_STYLES[finding.state]) + first[states:])
        for line in rest:
            click.echo(line)
        if finding.advice:
            for line in folded(finding.advice, " " * len(head) + "-> ", len(head) + len("-> ")):
                click.echo(click.style(line, bold=True))
