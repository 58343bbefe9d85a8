"""The systemd units and compose files: their settings, commands and exit codes exist in the program."""

import re
from pathlib import Path

import click
import pytest
from pydantic import BaseModel

from smartfeeds.app.config import CONFIGURATION
from smartfeeds.cli import main
from smartfeeds.console import Exit

FILES = [*("smartfeeds.service", "smartfeeds@.service", "smartfeeds-backup.service"), "compose.scaling.yaml"]
SETTING = re.compile(r"\bSMARTFEEDS_([A-Z0-9]+)__([A-Z0-9_]+)")
COMMAND = re.compile(r"(?:^ExecStart=\S*/|^ +)smartfeeds ([^;]*?)(?:; \\)?$", re.M)
FINAL = {Exit.CONFIG, Exit.STORE, Exit.NEWER}  # no new start helps after these exit codes


def text_of(root: Path, name: str) -> str:
    return (root / ("docker" if name.endswith(".yaml") else "config") / name).read_text("utf-8")


@pytest.mark.parametrize("name", FILES)
def test_settings_of_a_unit_exist(root: Path, name: str) -> None:
    settings = {(section.lower(), key.lower()) for section, key in SETTING.findall(text_of(root, name))}
    assert settings or name == "smartfeeds-backup.service"
    for section, key in settings:
        model = CONFIGURATION.model_fields[section].annotation
        assert isinstance(model, type) and issubclass(model, BaseModel), section
        assert key in model.model_fields, f"{section}.{key}"


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".service")])
def test_commands_of_a_unit_exist(root: Path, name: str) -> None:
    lines = COMMAND.findall(text_of(root, name))
    assert lines
    for line in lines:
        verb, *words = line.split()
        command = main.get_command(click.Context(main), verb)
        assert command is not None, verb
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("name", ["smartfeeds.service", "smartfeeds@.service"])
def test_unit_does_not_start_again_after_errors_that_only_an_operator_can_end(root: Path, name: str) -> None:
    codes = re.search(r"^RestartPreventExitStatus=(.*)$", text_of(root, name), re.M)
    assert codes is not None
    assert {int(code) for code in codes[1].split()} == {code.value for code in FINAL}


@pytest.mark.parametrize("name", ["smartfeeds.service", "smartfeeds@.service"])
def test_unit_stores_files_where_it_may_write(root: Path, name: str) -> None:
    """The configuration is a credential, whose folder is read-only, and other folders are closed (ProtectSystem)."""
    unit = text_of(root, name)
    assert "\nStateDirectory=smartfeeds\n" in unit and "\nProtectSystem=strict\n" in unit
    assert re.search(r"^Environment=SMARTFEEDS_STORE__(URL=sqlite:///|FILES=)/var/lib/smartfeeds/\w", unit, re.M)


def test_systemd_waits_longer_than_the_watchdog_and_a_stop(root: Path) -> None:
    """[TOP-031] The watchdog of the process writes the reason to the log, so it must come first."""
    unit = text_of(root, "smartfeeds@.service")
    seconds = {key: int(value) for key, value in re.findall(r"^(WatchdogSec|TimeoutStopSec)=(\d+)$", unit, re.M)}
    assert seconds["WatchdogSec"] > CONFIGURATION.model_fields["run"].annotation.model_fields["watchdog_s"].default  # type: ignore[union-attr]
    assert seconds["TimeoutStopSec"] >= 20
