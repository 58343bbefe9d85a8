"""Callbacks for the benchmark, in a process of their own: `python -m bench.receiver PORT` on all loopback addresses.

A line of input is a number of deliveries. When so many have come since the last line, a line of output has the times of
the first and of the last one, in seconds of `time.monotonic`, which is the same for all processes.
"""

import asyncio
import contextlib
import sys
import time

_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"


class Callbacks:
    """Counts deliveries."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(_LENGTH)[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                self.times.append(time.monotonic())
                self.changed.set()
                writer.write(_ANSWER)
        writer.close()


async def main() -> None:
    """Until the input ends."""
    callbacks = Callbacks()
    server = await asyncio.start_server(callbacks.serve, "0.0.0.0", int(sys.argv[1]), backlog=1_000)
    print("ready", flush=True)
    async with server:
        while line := await asyncio.to_thread(sys.stdin.readline):
            while len(callbacks.times) < int(line):
                callbacks.changed.clear()
                await callbacks.changed.wait()
            print(callbacks.times[0], callbacks.times[-1], flush=True)
            callbacks.times.clear()


if __name__ == "__main__":
    asyncio.run(main())
