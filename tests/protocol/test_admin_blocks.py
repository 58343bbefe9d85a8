"""The commands for block lists and for the erasure of a person, through the whole component (XEP-0133)."""

import pytest

from smartfeeds.core.blocklist import ListKind
from support.component import ALICE, BOB, Component, Starter, bare
from support.dialog import ADMIN as ADMIN_NS
from support.dialog import Dialog, condition, notes

ADMIN = "root@example.org/desk"


@pytest.fixture
async def service(start: Starter) -> Component:
    """A component with an admin, and the node tea of ALICE."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")
    return component


async def test_blacklist_is_replaced(service: Component) -> None:
    """[OPS-061] XEP-0133 4.10: a listed domain may not use the service; admins may."""
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#edit-blacklist")
    await dialog.begin()
    done = await dialog.go(blacklistjids=["spam.example", bare(BOB)])

    assert notes(done) == ["The list deny has 2 entries."]
    names = await service.app.service.store.read(lambda tx: tx.blocks(ListKind.DENY))
    assert names == sorted(["spam.example", bare(BOB)])


async def test_person_is_erased_after_a_second_confirmation(service: Component) -> None:
    """[OPS-065] XEP-0133 4.2: the JID is asked for twice."""
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#delete-user")
    await dialog.begin()
    await dialog.go(accountjids=bare(BOB), nodes="refuse")
    assert condition(await dialog.go(confirm=bare(ALICE))) == "bad-request/bad-payload"

    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#delete-user")
    await dialog.begin()
    await dialog.go(accountjids=bare(BOB), nodes="refuse")
    done = await dialog.go(confirm=bare(BOB))

    assert str(notes(done)[0]).startswith(f"The data of {bare(BOB)} is being erased. ")


async def test_denied_user_is_refused(service: Component) -> None:
    """[OPS-061] Every request of a denied user fails; the rights on nodes do not matter."""
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#edit-blacklist")
    await dialog.begin()
    await dialog.go(blacklistjids=[bare(ALICE)])

    assert condition(await Dialog(service, ALICE, f"{ADMIN_NS}#shutdown").begin()) == "forbidden"
