"""Programs that are not ours as processes: they print events as JSON lines, and end with their input."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.waiting import wait_for, waiting

PEERS = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


@asynccontextmanager
async def running(*command: str) -> AsyncIterator["Lines"]:
    """A program that ends with its input."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Lines(process.stdout, process.stdin)
    finally:
        process.stdin.close()
        await wait_for(process.wait(), f"the end of {command[0]}")


class Lines:
    """The events of a program, and what else it says for the message of a failure."""

    def __init__(self, stream: asyncio.StreamReader, commands: asyncio.StreamWriter) -> None:
        self._stream = stream
        self._commands = commands
        self.others: list[str] = []

    async def event(self, name: str) -> dict[str, Any]:
        async with waiting(f"the event {name}"):
            while line := (await self._stream.readline()).decode():
                if not line.startswith("{"):
                    self.others.append(line)
                    continue
                event: dict[str, Any] = json.loads(line)
                assert event["event"] == name, (event, self.others)
                return event
        raise AssertionError(self.others)

    def write(self, line: str) -> None:
        """Sends a line to the program."""
        self._commands.write(f"{line}\n".encode())
