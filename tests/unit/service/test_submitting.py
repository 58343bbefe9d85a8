"""What becomes of a request whose use case or whose receiver fails in an unexpected way."""

import asyncio
from typing import Any

import pytest

from smartfeeds.service import requests as r
from smartfeeds.service.context import Context
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx
from support.waiting import wait_for
from support.world import FEED, OWNER, SERVICE, World, draft, entry, jid


def _exhaust(_tx: ReadTx, _context: Context, request: r.Request) -> Any:
    """A use case that raises StopIteration, which no future accepts."""
    return next(iter(()))


@pytest.mark.parametrize("request_kind", ["read", "write"])
async def test_use_case_that_raises_stop_iteration_is_answered(world_on_disk: World, request_kind: str) -> None:
    service = world_on_disk.service
    await world_on_disk.create()
    broken = {r.Pull: ("pull", _exhaust)} if request_kind == "read" else {r.Purge: ("purge", _exhaust)}
    service.use_cases |= UseCases(reads=broken) if request_kind == "read" else UseCases(writes=broken)
    kind = r.Pull if request_kind == "read" else r.Purge
    with pytest.raises(RuntimeError, match="StopIteration"):
        await wait_for(service.handle(kind(jid(OWNER), SERVICE, FEED)), "the failure of the request")


async def test_receiver_that_raises_is_reported_and_others_are_answered(world_on_disk: World) -> None:
    service = world_on_disk.service
    await world_on_disk.create()
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))

    def fail(_answer: object, _error: BaseException | None) -> None:
        raise ValueError("receiver")

    def publish(item_id: str) -> r.Publish:
        return r.Publish(jid(OWNER), SERVICE, FEED, item_id, draft(entry(item_id)))

    service.submit(publish("a"), fail)
    await wait_for(service.handle(publish("b")), "the answer to the next request")

    assert await world_on_disk.ids_of(FEED) == "a b"
    assert [str(report["exception"]) for report in reports] == ["receiver"]
