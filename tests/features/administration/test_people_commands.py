"""The commands for affiliations and subscriptions through the whole component (XEP-0050)."""

import pytest

from support.component import ALICE, BOB, CAROL, Component, Starter, bare, fields
from support.dialog import Dialog, actions, condition, lines, notes, table

ADMIN = "root@example.org/desk"


@pytest.fixture
async def service(start: Starter) -> Component:
    """A component with an admin, and with a node of Alice."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")
    return component


async def affiliations(service: Component, user: str = ALICE) -> dict[str, str]:
    """The affiliations of the node, as the command lists them."""
    dialog = Dialog(service, user, "list-affiliations")
    await dialog.begin()
    return {row["jid"]: row["affiliation"] for row in table(await dialog.go(node="tea"))}


async def test_affiliations_are_changed_and_listed(service: Component) -> None:
    dialog = Dialog(service, ALICE, "set-affiliations")
    await dialog.begin()
    done = await dialog.go(node="tea", jids=["bob@example.org", "Carol@Example.org"], affiliation="publisher")

    assert notes(done) == ["Changed 2 JIDs of tea."]
    assert await affiliations(service) == {
        "alice@example.org": "owner",
        "bob@example.org": "publisher",
        "carol@example.org": "publisher",
    }
    assert await affiliations(service, ADMIN) == await affiliations(service)


async def test_last_owner_stays(service: Component) -> None:
    """The note names the entry that the service refused."""
    dialog = Dialog(service, ALICE, "set-affiliations")
    await dialog.begin()
    done = await dialog.go(node="tea", jids=[bare(ALICE)], affiliation="none")

    assert notes(done) == ["Not changed: alice@example.org stays owner."]
    assert await affiliations(service) == {"alice@example.org": "owner"}


async def test_long_list_of_a_node_is_paged_and_carries_the_node(service: Component) -> None:
    """The node is in a hidden field of every page. Back on the first page leads to the choice of the node."""
    for start in range(0, 120, 60):
        dialog = Dialog(service, ALICE, "set-affiliations")
        await dialog.begin()
        jids = [f"m{number:03}@example.org" for number in range(start, start + 60)]
        await dialog.go(node="tea", jids=jids, affiliation="member")
    dialog = Dialog(service, ALICE, "list-affiliations")
    await dialog.begin()

    first = await dialog.go(node="tea")
    second = await dialog.go("next")
    back = await dialog.go("prev")
    choice = await dialog.go("prev")

    assert (len(lines(first)), len(lines(second))) == (50, 50)
    assert lines(back) == lines(first)
    assert actions(first) == ("next", ["prev", "next", "complete"])
    assert fields(choice)["node"] == ["tea"] and lines(choice) == []


async def test_subscriptions_are_listed_approved_and_ended(service: Component) -> None:
    await service.configure(ALICE, "tea", access_model="authorize")
    assert await service.subscribe(CAROL, "tea") == "pending"
    await service.events(bare(CAROL))
    dialog = Dialog(service, ALICE, "set-subscriptions")
    await dialog.begin()
    approved = await dialog.go(node="tea", jids=[bare(CAROL)], state="subscribed")
    listing = Dialog(service, ALICE, "list-subscriptions")
    await listing.begin()
    rows = table(await listing.go(node="tea"))
    dialog = Dialog(service, ALICE, "set-subscriptions")
    await dialog.begin()
    ended = await dialog.go(node="tea", jids=[bare(CAROL)], state="none")
    listing = Dialog(service, ALICE, "list-subscriptions")
    await listing.begin()

    assert notes(approved) == notes(ended) == ["Changed 1 JID of tea."]
    assert rows == [{"jid": bare(CAROL), "state": "subscribed"}]
    assert notes(await listing.go(node="tea")) == ["There is no subscription."]
    assert len(await service.events(bare(CAROL))) == 2


@pytest.mark.parametrize("node", ["list-affiliations", "list-subscriptions"])
async def test_lists_of_a_foreign_node_are_forbidden(service: Component, node: str) -> None:
    await service.create(BOB, "milk")
    dialog = Dialog(service, BOB, node)
    await dialog.begin()

    assert condition(await dialog.go(node="tea")) == "forbidden"
