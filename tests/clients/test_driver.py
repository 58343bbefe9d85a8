"""The side of a test that talks to the process of a client."""

import sys

import pytest

from clients import driver
from clients.driver import LATE_CALLS, ClientError, Driver

# Answers nothing before the call `last`, and then all calls in their order.
LATE = """
import json, sys
numbers = []
for line in sys.stdin:
    request = json.loads(line)
    numbers.append(request["id"])
    if request["call"] == "last":
        for number in numbers:
            print(json.dumps({"id": number, "result": number}), flush=True)
"""


async def call_late(client: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that has no result in time."""
    with monkeypatch.context() as patch:
        patch.setattr(driver, "CALL_S", 0.01)
        with pytest.raises(ClientError, match="no result of first"):
            await client.call("first")


async def test_answer_that_comes_too_late_does_not_stop_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driver(sys.executable, "-c", LATE) as client:
        await call_late(client, monkeypatch)

        assert await client.call("last") == 2


async def test_client_that_has_no_results_is_not_asked_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driver(sys.executable, "-c", LATE) as client:
        for _ in range(LATE_CALLS):
            await call_late(client, monkeypatch)

        with pytest.raises(ClientError, match="not tried, because there was no result of first, first, first"):
            await client.call("last")
