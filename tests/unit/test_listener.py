"""The server for streams of the tests, which other tests trust."""

import asyncio
import socket

import pytest

from support.listener import HOST, Listener
from support.waiting import HANG_S, wait_for


@pytest.mark.parametrize("turns", range(5))
async def test_listener_may_close_in_any_turn_of_a_connection(turns: int) -> None:
    """The client is refused, reset or served, and no transport is lost, which would be a warning."""
    served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        served.set()

    listener = Listener(serve)
    with socket.create_connection((HOST, listener.port)) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await listener.close()
        client.settimeout(HANG_S)
        is_served = bool(listener.served)
        try:
            client.shutdown(socket.SHUT_WR)
            assert await asyncio.to_thread(client.recv, 1) == b""
        except OSError:
            assert not is_served
        if is_served:
            await wait_for(served.wait(), "the end of the connection")

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, listener.port))
