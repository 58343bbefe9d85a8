"""The commands for consumers and the process through the whole component (XEP-0050, XEP-0133)."""

import asyncio
from functools import partial

import pytest
import structlog

from smartfeeds.app.lifecycle import App
from smartfeeds.core.consumers import PUSH, Consumer, Failure
from smartfeeds.core.model import Mark
from smartfeeds.core.view import Order
from smartfeeds.store.base import WriteTx
from smartfeeds.telemetry import log_level, set_log_level
from support.component import ALICE, BOB, NS, Component, Starter, bare, fields, submit
from support.dialog import ADMIN as ADMIN_NS
from support.dialog import Dialog, condition, lines, listed, notes, table

ADMIN = "root@example.org/desk"
ADMIN_COMMANDS = [
    "retry-consumers",
    "statistics",
    "log-level",
    "cancel-stop",
    f"{ADMIN_NS}#announce",
    f"{ADMIN_NS}#shutdown",
]


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The stops that admins requested."""
    requested: list[bool] = []

    async def sleep(_seconds: float) -> None:
        """No pause: the clock stands still."""

    monkeypatch.setattr("support.component.App", partial(App, on_stop=requested.append, sleep=sleep))
    return requested


@pytest.fixture
async def service(start: Starter, stops: list[bool]) -> Component:
    """A component with an admin, and with a node of Alice."""
    assert stops == []
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")
    return component


async def run(service: Component, command: str, **values: str) -> list[str | None]:
    """The notes of a command with one form."""
    dialog = Dialog(service, ADMIN, command)
    await dialog.begin()
    return notes(await dialog.go(**values))


async def test_commands_of_admins_are_theirs_alone(service: Component) -> None:
    """An owner neither sees nor runs them. The restart needs `run.restarts`."""
    assert set(ADMIN_COMMANDS) < set(await listed(service, ADMIN))
    assert not set(ADMIN_COMMANDS) & set(await listed(service, ALICE))
    assert f"{ADMIN_NS}#restart" not in await listed(service, ADMIN)
    for node in [*ADMIN_COMMANDS, f"{ADMIN_NS}#restart"]:
        assert condition(await Dialog(service, ALICE, node).begin()) == "forbidden"
    assert condition(await Dialog(service, ADMIN, f"{ADMIN_NS}#restart").begin()) == "forbidden"


async def test_forged_session_does_not_skip_the_check_of_rights(service: Component) -> None:
    """The id of a session grants nothing: the last step of an admin's command fails for an owner."""
    dialog = Dialog(service, ALICE, f"{ADMIN_NS}#shutdown")
    runner = service.app.router._commands
    dialog.session = runner._sessions.begin(bare(ALICE), "feeds.example.org", dialog.node)
    form = submit({"FORM_TYPE": [ADMIN_NS], "step": ["0"], "delay": ["0"], "recipients": ["owners"]})

    assert condition(await dialog.send(form, "complete")) == "forbidden"


# Consumers


async def fail(service: Component, names: list[str]) -> None:
    """Makes consumers of the node fail."""

    def work(tx: WriteTx) -> None:
        node = tx.node("tea")
        assert node is not None
        for name in names:
            consumer = Consumer(node.node_no, name)
            tx.set_mark(node.node_no, Order.MODIFIED, name, Mark(-1, ""))
            tx.set_wait(consumer, Failure(3, 5, None, "the receiver answers 500"))

    await service.app.service.store.write(work)


async def test_consumers_are_listed_with_their_error_and_retried(service: Component) -> None:
    await service.subscribe(BOB, "tea")
    await fail(service, ["hub:https://reader.example/"])
    dialog = Dialog(service, ADMIN, "list-consumers")
    await dialog.begin()
    late = table(await dialog.go())
    dialog = Dialog(service, ADMIN, "list-consumers")
    await dialog.begin()
    every = table(await dialog.go(behind="0"))

    assert [(row["consumer"], row["node"], row["state"], row["error"]) for row in late] == [
        ("hub:https://reader.example/", "tea", "stopped", "the receiver answers 500")
    ]
    assert {row["consumer"] for row in every} == {"hub:https://reader.example/", PUSH}
    assert await run(service, "retry-consumers", consumer="hub:https://reader.example/") == [
        "1 consumer will be retried."
    ]
    assert await run(service, "retry-consumers", consumer="") == ["1 consumer will be retried."]
    dialog = Dialog(service, ADMIN, "retry-consumers")
    await dialog.begin()
    assert condition(await dialog.go(consumer="none")) == "item-not-found"


async def test_long_list_of_consumers_goes_on_and_back_to_its_begin(service: Component) -> None:
    await fail(service, [f"hub:https://reader.example/{number:03}" for number in range(120)])
    dialog = Dialog(service, ADMIN, "list-consumers")
    await dialog.begin()

    first = await dialog.go()
    second = await dialog.go("next")
    third = await dialog.go("next")
    begin = await dialog.send("", "prev")
    done = await dialog.go("complete")

    names = [line for page in (first, second, third) for line in lines(page)]
    assert names == [f"hub:https://reader.example/{number:03}" for number in range(120)]
    assert lines(begin) == lines(first) == [row["consumer"] for row in table(done)]


# The process


async def test_statistics_count_the_store_and_the_process(service: Component) -> None:
    await service.publish(ALICE, "tea", "one")
    await service.publish(ALICE, "tea", "two")
    await service.retract(ALICE, "tea", "two")
    await service.subscribe(BOB, "tea")
    service.clock.advance(100)

    facts = fields(await Dialog(service, ADMIN, "statistics").begin())

    assert facts["uptime"] == ["100"]
    assert (facts["nodes"], facts["items"], facts["deleted"], facts["subscriptions"]) == (["1"], ["1"], ["1"], ["1"])
    assert int(facts["requests"][0]) >= 5
    assert int(facts["notifications"][0]) == 0


async def test_statistics_have_the_rates_of_the_last_minute(service: Component) -> None:
    """Published, notified, pulled and refused per second, since the snapshot of the start."""
    await service.subscribe(BOB, "tea")
    service.clock.advance(50)
    for number in range(5):
        await service.publish(ALICE, "tea", f"i{number}")
    await service.item_ids(BOB, "tea")
    assert (await service.get(BOB, "<items node='missing'/>")).get("type") == "error"
    await service.settle()

    facts = fields(await Dialog(service, ADMIN, "statistics").begin())

    # The four queries by which the fixture and `settle` wait are refused too.
    rates = {name: facts[f"{name}-rate"] for name in ("publish", "notification", "pull", "refusal")}
    assert rates == {"publish": ["0.10"], "notification": ["0.10"], "pull": ["0.02"], "refusal": ["0.10"]}


async def test_log_level_is_shown_and_changed(service: Component) -> None:
    former = log_level()
    try:
        dialog = Dialog(service, ADMIN, "log-level")
        form = await dialog.begin()
        done = await dialog.go(level="error")
        assert fields(form)["level"] == [former]
        assert notes(done) == ["The log level is error."]
        assert log_level() == "error"
        assert not structlog.get_logger().bind().is_enabled_for(20)
    finally:
        set_log_level(former)


@pytest.mark.parametrize(("recipients", "address"), [("subscribers", bare(BOB)), ("owners", bare(ALICE))])
async def test_announcement_reaches_its_recipients(service: Component, recipients: str, address: str) -> None:
    """[OPS-062] XEP-0133 4.23: one message to the bare JID of each."""
    await service.subscribe(BOB, "tea", BOB)
    await service.subscribe(BOB, "tea")
    text = ["Tea is ready & hot", "<Come>"]
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#announce")
    await dialog.begin()

    done = await dialog.go(recipients=recipients, subject="News", announcement=text)
    (message,) = await service.next_event(address)

    assert notes(done) == [f"The announcement is being sent to all {recipients}."]
    assert (message.get("type"), message.get("from")) == ("normal", "feeds.example.org")
    assert message.findtext("c:subject", namespaces=NS) == "News"
    assert message.findtext("c:body", namespaces=NS) == "\n".join(text)
    others = {bare(ALICE), bare(BOB), BOB} - {address}
    assert [await service.events(other) for other in others] == [[], []]


async def test_shutdown_announces_and_ends_the_process(service: Component, stops: list[bool]) -> None:
    """[OPS-064] XEP-0133 4.31: the answer comes before the end."""
    await service.subscribe(BOB, "tea")

    done = await run(service, f"{ADMIN_NS}#shutdown", delay="30", announcement="Back at five")
    (message,) = await service.next_event(bare(BOB))

    assert done == ["The service stops in 30 seconds."]
    assert message.findtext("c:body", namespaces=NS) == "Back at five"
    assert stops == [False]


async def test_shutdown_that_is_cancelled_does_not_come(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-064] The delay does not end before the command."""
    requested: list[bool] = []
    ends = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        await ends.wait()

    monkeypatch.setattr("support.component.App", partial(App, on_stop=requested.append, sleep=sleep))
    service = await start(pubsub={"admins": [bare(ADMIN)]})
    await run(service, f"{ADMIN_NS}#shutdown", delay="30")

    assert notes(await Dialog(service, ADMIN, "cancel-stop").begin()) == ["The shutdown or restart is cancelled."]
    ends.set()
    await service.settle()
    assert requested == []
    assert condition(await Dialog(service, ADMIN, "cancel-stop").begin()) == "item-not-found"


async def test_restart_is_offered_where_a_process_manager_does_it(start: Starter, stops: list[bool]) -> None:
    """[OPS-064] XEP-0133 4.32 with `run.restarts`."""
    service = await start(pubsub={"admins": [bare(ADMIN)]}, run={"restarts": True})

    assert f"{ADMIN_NS}#restart" in await listed(service, ADMIN)
    assert await run(service, f"{ADMIN_NS}#restart", delay="0") == ["The service restarts in 0 seconds."]
    await service.settle()
    assert stops == [True]
    assert condition(await Dialog(service, ADMIN, "cancel-stop").begin()) == "item-not-found"
