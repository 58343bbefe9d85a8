"""Requests that a client sends without waiting for responses take effect in the order in which it sent them.

Each test holds back a request that was sent before others, in the only place where it can be held back: in the store.
Without an order of their own, the requests after it would be answered meanwhile.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from smartfeeds.service import publishing
from smartfeeds.service.requests import Subscribe, Unsubscribe
from support.component import ALICE, INFO, PS, Component, Starter, entry, ok, refusal
from support.waiting import HANG_S, in_vain, until

pytestmark = pytest.mark.shared

SECOND = "alice@example.org/phone"
CREATE = f"<pubsub xmlns='{PS}'><create node='news'/></pubsub>"
DELETE = f"<pubsub xmlns='{PS}#owner'><delete node='news'/></pubsub>"
PURGE = f"<pubsub xmlns='{PS}#owner'><purge node='news'/></pubsub>"
PULL = f"<pubsub xmlns='{PS}'><items node='news'/></pubsub>"
ABOUT_SERVICE = f"<query xmlns='{INFO}'/>"
ABOUT_NODE = f"<query xmlns='{INFO}' node='news'/>"


def publish(item: str) -> str:
    return f"<pubsub xmlns='{PS}'><publish node='news'><item id='{item}'>{entry(item)}</item></publish></pubsub>"


class Gate:
    """Holds back the writes of the store from the `close` to the `open`. Reads go on."""

    def __init__(self, component: Component) -> None:
        self._store = component.app.service.store
        self._opened = threading.Event()
        self._closing: asyncio.Future[None] | None = None

    async def close(self) -> None:
        reached, loop = asyncio.get_running_loop().create_future(), asyncio.get_running_loop()

        def wait(_tx: Any) -> None:
            loop.call_soon_threadsafe(reached.set_result, None)
            assert self._opened.wait(HANG_S), in_vain("the gate")

        self._closing = asyncio.ensure_future(self._store.write(wait, turn="gate"))
        await reached

    async def open(self) -> None:
        self._opened.set()
        assert self._closing is not None
        await self._closing


async def in_order(component: Component, user: str, *bodies: tuple[str, str]) -> list[Any]:
    """Sends requests at once while no write can run, then lets the writes run. Returns the responses."""
    gate = Gate(component)
    await gate.close()
    answers = [asyncio.ensure_future(component.ask(user, kind, body)) for kind, body in bodies]
    for _ in range(5):  # responses to another domain, which the requests could overtake together with the gate
        await component._round_trip()
    await gate.open()
    return await asyncio.gather(*answers)


def ids(answer: Any) -> list[str]:
    return [str(each) for each in ok(answer).xpath(".//*[local-name()='item']/@id")]


async def test_pull_sees_the_publish_before_it_and_not_the_one_after_it(component: Component) -> None:
    await component.create(ALICE, "news")
    answers = await in_order(
        component,
        ALICE,
        *(("set", publish("a")), ("get", PULL), ("set", publish("b")), ("set", publish("c")), ("get", PULL)),
    )

    assert [ids(answers[1]), ids(answers[4])] == [["a"], ["a", "b", "c"]]


@pytest.mark.parametrize(("request_", "left"), [(PURGE, []), (DELETE, None)])
async def test_pull_sees_the_purge_or_delete_before_it(
    component: Component, request_: str, left: list[str] | None
) -> None:
    await component.create(ALICE, "news")
    answers = await in_order(
        component, ALICE, ("set", publish("a")), ("set", publish("b")), ("set", request_), ("get", PULL)
    )

    if left is None:
        assert refusal(answers[3]).condition == "item-not-found"
    else:
        assert ids(answers[3]) == left


async def test_response_about_the_service_follows_the_writes_before_it(component: Component) -> None:
    """Slixfeed does not wait for the response to a delete. When it has the response to a later request, the node is
    gone for everybody."""
    await component.create(ALICE, "news")
    gate = Gate(component)
    await gate.close()
    order: list[str] = []
    waiting = []
    for name, kind, body in (("delete", "set", DELETE), ("service", "get", ABOUT_SERVICE), ("node", "get", ABOUT_NODE)):
        answer = asyncio.ensure_future(component.ask(ALICE, kind, body))
        answer.add_done_callback(lambda _done, name=name: order.append(name))
        waiting.append(answer)
        await component._round_trip()
    assert not order
    # Another device of the user does not wait.
    ok(await component.ask(SECOND, "get", ABOUT_SERVICE))
    assert not order
    await gate.open()
    answers = await asyncio.gather(*waiting)

    assert order[0] == "delete"
    assert refusal(answers[2]).condition == "item-not-found"


async def test_publish_after_a_delete_creates_the_node_again(start: Any) -> None:
    component = await start(pubsub={"auto_create": True})
    answers = await in_order(
        component,
        ALICE,
        *(("set", publish("a")), ("set", DELETE), ("set", publish("b")), ("get", PULL), ("set", DELETE), ("get", PULL)),
    )

    assert ids(answers[3]) == ["b"]
    assert refusal(answers[5]).condition == "item-not-found"


async def test_publish_after_a_purge_in_many_steps_stays(component: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later requests of the sender wait for all steps; other users do not."""
    monkeypatch.setattr(publishing, "PURGE_CHUNK", 1)
    monkeypatch.setattr(publishing, "PURGE_STEP", 1)
    await component.create(ALICE, "news", publish_model="open")
    for item in "abc":
        await component.publish(ALICE, "news", item)
    lives: list[int] = []
    seen: Callable[..., Any] = publishing.find_for

    def look(tx: Any, context: Any, name: Any, actor: Any) -> Any:
        located = seen(tx, context, name, actor)
        if located is not None:
            lives.append(tx.node("news").live)
        return located

    reach: Callable[..., Any] = publishing.access_of

    def note(tx: Any, context: Any, node: Any, actor: Any) -> Any:
        lives.append(node.live)
        return reach(tx, context, node, actor)

    monkeypatch.setattr(publishing, "find_for", look)
    monkeypatch.setattr(publishing, "access_of", note)
    answers = await in_order(component, ALICE, ("set", PURGE), ("set", publish("d")), ("get", PULL))

    assert ids(answers[2]) == ["d"]
    assert lives == [3, 0], "the publish ran between two steps of the purge"


async def test_publish_that_waits_for_expired_items_is_not_overtaken(component: Component) -> None:
    """A request that finds expired items runs again after their removal, before later requests of its sender."""
    await component.create(ALICE, "news", kind="generic", item_expire="60")
    await component.publish(ALICE, "news", "old")
    component.clock.advance(61)
    answers = await in_order(component, ALICE, ("set", publish("a")), ("set", DELETE), ("set", CREATE), ("get", PULL))

    assert ids(answers[3]) == []
    assert [ok(answer) is not None for answer in answers] == [True] * 4


def noting(runs: list[str], row: tuple[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The use case of a row, which adds its name whenever it runs."""
    name, use_case = row

    def run(*arguments: Any, **options: Any) -> Any:
        runs.append(name)
        return use_case(*arguments, **options)

    return run


async def test_subscription_that_waits_for_the_filter_index_is_not_overtaken(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    await component.create(ALICE, "news", send_last_published_item="on_sub")
    await component.publish(ALICE, "news", "a")
    runs: list[str] = []
    writes = component.app.service.use_cases.writes
    for request in (Subscribe, Unsubscribe):
        monkeypatch.setitem(writes, request, ("noted", noting(runs, writes[request])))  # type: ignore[arg-type]
    view = "node='news?q=a' jid='alice@example.org'"
    await in_order(
        component,
        ALICE,
        ("set", f"<pubsub xmlns='{PS}'><subscribe {view}/></pubsub>"),
        ("set", f"<pubsub xmlns='{PS}'><unsubscribe {view}/></pubsub>"),
    )

    assert runs == ["subscribe", "subscribe", "unsubscribe"]


async def test_requests_of_a_link_that_has_ended_come_before_those_of_the_next_one(start: Starter) -> None:
    """Their responses go over the next link, and they do not count any more when they have ended."""
    component = await start()
    await component.create(ALICE, "news")
    gate, app = Gate(component), component.app
    await gate.close()
    bodies = (("set", publish("a")), ("get", PULL), ("set", publish("b")))
    answers = [asyncio.ensure_future(component.ask(ALICE, kind, body)) for kind, body in bodies]
    await until(lambda: app.router.in_flight == 3, "the requests to arrive")
    app.stream.drop("lost")
    component.session = await component.server.session(2)
    await app.online.wait()
    retract = f"<pubsub xmlns='{PS}'><retract node='news'><item id='a'/></retract></pubsub>"
    answers.append(asyncio.ensure_future(component.ask(ALICE, "set", retract)))
    await until(lambda: app.router.in_flight == 4, "the request of the next link to arrive")
    await gate.open()
    await component.relink()
    _, page, _, _ = await asyncio.gather(*answers)

    assert ids(page) == ["a"]
    assert ids(await component.ask(ALICE, "get", PULL)) == ["b"]
    assert (app.router.in_flight, app.stream.turns.stanzas, app.stream.turns.size_bytes) == (0, 0, 0)
