"""A client of the table, as a process that the test talks to in JSON (drivers/protocol.py describes how)."""

import asyncio
import itertools
import json
import os
import signal
from types import TracebackType
from typing import Any, Self

# Far more than a call takes on a machine with other work. The backend of Libervia starts within this time.
CALL_S = 60.0
END_S = 20.0
# So many calls may have no result in time. The others of this client fail at once, because a client has some 80 calls,
# and one that hangs would keep all others waiting for half an hour.
LATE_CALLS = 3


class ClientError(Exception):
    """A call failed: a stanza error, or an answer that the library cannot read."""


class MissingError(Exception):
    """The library has no such function."""


class Driver:
    """The process of a driver. An async context manager."""

    def __init__(self, *command: str, environment: dict[str, str] | None = None) -> None:
        self._command = command
        self._environment = environment
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._late: list[str] = []  # names of calls

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 22,
            start_new_session=True,
        )
        self._errors = asyncio.ensure_future(self._read_errors())
        self._reading = asyncio.ensure_future(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_S)
        except TimeoutError:
            # A driver may have processes of its own.
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        await asyncio.gather(self._reading, self._errors)

    async def call(self, name: str, **arguments: Any) -> Any:
        """The result of a call. Raises ClientError, MissingError."""
        assert self._process.stdin is not None
        if len(self._late) == LATE_CALLS:
            raise ClientError(f"not tried, because there was no result of {', '.join(self._late)}")
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        request = {"id": number, "call": name, "arguments": arguments}
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
            response = await asyncio.wait_for(answer, CALL_S)
        except TimeoutError:
            self._late.append(name)
            raise ClientError(f"no result of {name} within {CALL_S:.0f} s") from None
        except ConnectionError:
            raise ClientError(f"the driver has ended: {await self._errors}") from None
        finally:
            self._answers.pop(number, None)
        if "missing" in response:
            raise MissingError(response["missing"])
        if "error" in response:
            raise ClientError(response["error"])
        return response["result"]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            if line.startswith(b'{"id"'):
                response = json.loads(line)
                answer = self._answers.get(response["id"])
                if answer is not None and not answer.done():  # a call that took too long waits no more
                    answer.set_result(response)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("the driver has ended"))

    async def _read_errors(self) -> str:
        assert self._process.stderr is not None
        return (await self._process.stderr.read()).decode(errors="replace")[-2000:]
