"""A database that version 0.1.0 has written: after the upgrade clients get the answers that they got before.

`tests/data/version-0.1.0` has the database and the answers of that version.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from support.component import ALICE, BOB, CAROL, NS, Component, bare, headers, refusal, starting

FOLDER = Path(__file__).parents[1] / "data/version-0.1.0"
RECORD = json.loads((FOLDER / "answers.json").read_text("utf-8"))
RSM = "http://jabber.org/protocol/rsm"


@pytest.fixture
async def upgraded(tmp_path: Path) -> AsyncIterator[Component]:
    """The service of today over a copy of the database, some minutes later."""
    async with starting(tmp_path, FOLDER / "feeds.db") as start:
        start._clock.now_us = RECORD["now_us"] + 300_000_000
        yield await start()


async def answer(component: Component, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request of the record."""
    items = "".join(f"<item id={quoteattr(item_id)}/>" for item_id in request["ask"])
    result_set = f"<set xmlns='{RSM}'>{request['set']}</set>" if request["set"] else ""
    got = await component.get(request["user"], f"<items node={quoteattr(request['node'])}>{items}</items>{result_set}")
    asked = {name: request[name] for name in ("user", "node", "set", "ask")}
    if got.get("type") == "error":
        return asked | {"error": refusal(got).condition}
    found = {name: got.findtext(f".//rsm:{name}", namespaces=NS) for name in ("count", "first", "last")}
    return asked | {"ids": [item.get("id") for item in got.iterfind("ps:pubsub/ps:items/ps:item", NS)]} | found


async def test_pages_and_cursors_are_those_of_before(upgraded: Component) -> None:
    """[OPS-091] Nodes, views in both orders, filters, rights, counts, and every cursor that clients have stored."""
    assert len(RECORD["answers"]) > 70
    for request in RECORD["answers"]:
        got = await answer(upgraded, request)
        # The condition has changed: closed nodes are hidden from strangers now.
        assert got == request or got.keys() == request.keys() == {"user", "node", "set", "ask", "error"}


async def test_subscribers_go_on_where_they_were(upgraded: Component) -> None:
    """[OPS-091] The item that waited is sent, and nothing is sent twice. PreviousCursor proves it."""
    (waited,) = await upgraded.events(bare(ALICE))
    assert waited.find(".//ev:item", NS).get("id") == "unsent"  # type: ignore[union-attr]
    assert headers(waited)["PreviousCursor"] == "1767226630_0_bac42aa9"
    assert [await upgraded.events(user) for user in (bare(BOB), bare(CAROL), CAROL)] == [[], [], []]

    await upgraded.publish(BOB, "news", "new")

    for address in (bare(BOB), bare(CAROL)):
        (event,) = await upgraded.events(address)
        assert headers(event)["PreviousCursor"] == "1767226620_0_1bbe8002"
    assert await upgraded.events(CAROL) == []  # deliver is false
