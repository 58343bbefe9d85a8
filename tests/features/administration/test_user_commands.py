"""The commands for users, and purges that go on after the answer, through the whole component (XEP-0133)."""

import asyncio

import pytest

from smartfeeds.delivery.sweeps import PURGES, Sweep
from smartfeeds.features.administration import requests as admin_requests
from smartfeeds.service.feeds import FeedService
from support.component import ALICE, BOB, NS, Component, Starter, bare, fields
from support.dialog import ADMIN as ADMIN_NS
from support.dialog import Dialog, condition, notes, table

ADMIN = "root@example.org/desk"


async def wait_for_ever(_sweep: Sweep, _service: FeedService) -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def service(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with two admins, and with a node of Alice. Only the tests do the work that goes on."""
    monkeypatch.setattr("smartfeeds.delivery.changes.LOOK_S", 3_600)
    monkeypatch.setattr(Sweep, "run", wait_for_ever)
    component = await start(pubsub={"admins": [bare(ADMIN), "ann@example.org"]})
    await component.create(ALICE, "tea", title="Tea & cakes")
    return component


async def run(service: Component, user: str, command: str, *steps: dict[str, str]) -> list[str | None]:
    """The notes of a command with these answers to its forms."""
    dialog = Dialog(service, user, command)
    answer = await dialog.begin()
    for values in steps:
        answer = await dialog.go(**values)
    return notes(answer)


async def work_of(service: Component, user: str) -> list[dict[str, str]]:
    answer = await Dialog(service, user, "list-work").begin()
    return [] if answer.find(".//x:item", NS) is None else table(answer)


async def test_admins_are_shown_and_cannot_be_changed(service: Component) -> None:
    """[OPS-060] The command ends with the list: it has no form that could change it."""
    answer = await Dialog(service, ADMIN, f"{ADMIN_NS}#edit-admin").begin()

    assert fields(answer)["adminjids"] == ["ann@example.org", bare(ADMIN)]
    assert notes(answer) == ["Change pubsub.admins in the configuration of each process, and restart the processes."]
    assert condition(await Dialog(service, ALICE, f"{ADMIN_NS}#edit-admin").begin()) == "forbidden"


async def test_counts_of_a_user(service: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-063] Items are counted in several requests, without those of others and without retracted items."""
    monkeypatch.setattr(admin_requests, "ITEMS_EXAMINED", 2)
    await service.create(BOB, "milk")
    await service.affiliate(BOB, "milk", ALICE, "publisher")
    for node, ids in (("tea", ("one", "two", "three")), ("milk", ("four",))):
        for item_id in ids:
            await service.publish(ALICE, node, item_id)
    await service.publish(BOB, "milk", "five")
    await service.retract(ALICE, "tea", "two")
    await service.subscribe(ALICE, "milk", ALICE)
    await run(service, ALICE, "add-token", {"feed": "tea"})
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#get-user-statistics")
    await dialog.begin()

    answer = await dialog.go(accountjid=bare(ALICE))

    counts = fields(answer)
    assert counts.pop("FORM_TYPE") == ["urn:smartfeeds:0#user-statistics"]
    assert {name: texts[0] for name, texts in counts.items()} == {
        "accountjid": bare(ALICE),
        "nodes": "1",
        "affiliations": "2",
        "subscriptions": "1",
        "items": "3",
        "tokens": "1",
        "sessions": "0",
        "contacts": "0",
    }
    assert condition(await Dialog(service, ALICE, f"{ADMIN_NS}#get-user-statistics").begin()) == "forbidden"


async def test_counts_of_a_large_store_say_how_far_they_go(service: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_requests, "ITEMS_EXAMINED", 1)
    monkeypatch.setattr("smartfeeds.features.administration.adhoc_users.MOST_ITEMS", 2)
    for item_id in ("one", "two", "three"):
        await service.publish(ALICE, "tea", item_id)
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#get-user-statistics")
    await dialog.begin()

    assert fields(await dialog.go(accountjid=bare(ALICE)))["items"] == ["2 of the oldest 2 items"]


async def test_node_is_shown_to_its_owner(service: Component) -> None:
    """[OPS-068]"""
    await service.publish(ALICE, "tea", "one")
    await service.publish(ALICE, "tea", "two")
    await service.retract(ALICE, "tea", "two")
    await service.subscribe(BOB, "tea")
    dialog = Dialog(service, ALICE, "show-node")
    await dialog.begin()
    facts = {name: texts[0] for name, texts in fields(await dialog.go(node="tea")).items() if texts}

    counts = ("items", "deleted", "conflicts", "subscriptions", "affiliations")
    assert [facts[name] for name in counts] == ["1", "1", "0", "1", "1"]
    assert (facts["title"], facts["kind"], facts["creator"]) == ("Tea & cakes", "feed", bare(ALICE))
    await service.create(BOB, "milk")
    dialog = Dialog(service, BOB, "show-node")
    await dialog.begin()
    assert condition(await dialog.go(node="tea")) == "forbidden"


async def test_purge_of_a_large_node_goes_on_after_the_answer(
    service: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[OPS-068] [OPS-070] The work is a row of the store, so another process can show it and do the rest."""
    monkeypatch.setattr("smartfeeds.service.publishing.PURGE_CHUNK", 2)
    for item_id in ("one", "two", "three"):
        await service.publish(ALICE, "tea", item_id)
    steps = ({"node": "tea"}, {"confirm": "true"})

    begun = await run(service, ALICE, "purge-node", *steps)
    (work,) = await work_of(service, ALICE)
    await service.create(BOB, "milk")
    of_another = await work_of(service, BOB)

    assert begun == [f"The items of tea are being retracted. List work in progress shows it as {work['number']}."]
    assert (work["work"], work["subject"], work["rest"], work["since"]) == ("purge", "tea", "1", "")
    assert of_another == []
    assert await work_of(service, ADMIN) == [work]
    await PURGES.sweep(service.app.service)
    assert await work_of(service, ALICE) == []
    assert await service.item_ids(ALICE, "tea") == []
    await service.publish(ALICE, "tea", "four")
    assert await run(service, ALICE, "purge-node", *steps) == ["Retracted all items of tea."]
    assert await run(service, ALICE, "purge-node", steps[0], {"confirm": "false"}) == [
        "The items of tea were not retracted."
    ]


async def test_purge_is_for_owners(service: Component) -> None:
    """[OPS-068]"""
    await service.create(BOB, "milk")
    dialog = Dialog(service, BOB, "purge-node")
    await dialog.begin()
    assert condition(await dialog.go(node="tea")) == "forbidden"
