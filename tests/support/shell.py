"""Commands as a shell runs them, in this process: in a folder, with an environment that configures nothing."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from smartfeeds.cli import main
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from support.service import stored_service

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


def commands(group: click.Group, path: str = "smartfeeds") -> list[str]:
    """Every command of the program, as it is typed."""
    paths = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        paths += commands(command, f"{path} {name}") if isinstance(command, click.Group) else [f"{path} {name}"]
    return paths


def program_in(folder: Path) -> dict[str, str]:
    """Writes the program `smartfeeds` of this checkout into a new folder; the environment that finds it there first."""
    folder.mkdir()
    program = folder / "smartfeeds"
    # As the script that an installation writes: completion needs the name of the program.
    start = "import sys\nfrom smartfeeds.cli import main\nsys.exit(main())\n"
    program.write_text(f"#!/usr/bin/env -S {sys.executable} -W error\n{start}")
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SMARTFEEDS_")}
    component = Path(__file__).parents[2] / "component"
    return {**environment, "PATH": f"{folder}:{environment['PATH']}", "PYTHONPATH": str(component)}


def run_block(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Runs the commands of a page in a folder, as `bash` does after `set -euo pipefail`; what they printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def write(work: Callable[[WriteTx, Context], object]) -> None:
    """Changes the store as a running service does."""

    async def run() -> None:
        async with stored_service() as service:
            await service.write(work)

    asyncio.run(run())


async def run_process(command: list[str], cwd: Path, **environment: str) -> tuple[int, str]:
    """Runs a process while the service goes on in this one; its exit code and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()
