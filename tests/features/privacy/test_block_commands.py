"""The commands for block lists and for the erasure of a person, through the whole component (XEP-0133)."""

import pytest

from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.person import Person
from smartfeeds.features.privacy import rows as privacy_rows
from smartfeeds.features.privacy.blocking import add_entries
from support.component import ALICE, BOB, NS, Component, Starter, bare, fields
from support.dialog import ADMIN as ADMIN_NS
from support.dialog import Dialog, condition, notes, status

ADMIN = "root@example.org/desk"


@pytest.fixture
async def service(start: Starter) -> Component:
    """A component with an admin, and the node tea of ALICE."""
    component = await start(pubsub={"admins": [bare(ADMIN)]})
    await component.create(ALICE, "tea")
    return component


@pytest.mark.parametrize(
    ("command", "field", "kind"),
    [("edit-blacklist", "blacklistjids", ListKind.DENY), ("edit-whitelist", "whitelistjids", ListKind.ALLOW)],
)
async def test_list_is_replaced(service: Component, command: str, field: str, kind: ListKind) -> None:
    """[OPS-061] XEP-0133 4.10 and 4.11: the form has the present list, and the answer replaces it. Admins are admitted
    whatever it says."""
    for entries in (["spam.example", bare(BOB)], ["Other.example", bare(BOB)]):
        dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#{command}")
        shown = fields(await dialog.begin()).get(field, [])
        assert shown == await service.app.service.store.read(lambda tx: privacy_rows.blocks(tx, kind))
        assert notes(await dialog.go(**{field: entries})) == [f"The list {kind.value} has 2 entries."]

    assert await service.app.service.store.read(lambda tx: privacy_rows.blocks(tx, kind)) == sorted(
        ["other.example", bare(BOB)]
    )
    assert condition(await Dialog(service, ALICE, f"{ADMIN_NS}#{command}").begin()) == "forbidden"


@pytest.mark.parametrize(
    "names",
    [
        [f"user{number}@spam.example" for number in range(1_001)],
        [f"{number}-{'x' * 900}@spam.example" for number in range(100)],
        [f"user{number}@spam.example" for number in range(5_000)],
    ],
    ids=["entries", "bytes", "more than a stanza"],
)
async def test_list_that_is_too_long_for_a_form_is_not_cut(service: Component, names: list[str]) -> None:
    """[OPS-061] The form that comes back replaces the list. The command line changes lists of every length."""
    kind = ListKind.DENY
    await service.app.service.write(lambda tx, context: add_entries(tx, context, kind, names))
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#edit-blacklist")

    answer = await dialog.begin()

    assert condition(answer) == "not-allowed"
    assert f"has {len(names):,} entries" in str(answer.findtext("c:error/st:text", "", NS))
    assert len(await service.app.service.store.read(lambda tx: privacy_rows.blocks(tx, kind))) == len(names)


async def test_longest_list_of_a_form_is_replaced(service: Component) -> None:
    """[OPS-061] A thousand entries are shown, and come back."""
    names = [f"user{number}@spam.example" for number in range(1_000)]
    await service.app.service.write(lambda tx, context: add_entries(tx, context, ListKind.DENY, names))
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#edit-blacklist")

    assert sorted(fields(await dialog.begin())["blacklistjids"]) == sorted(names)
    assert notes(await dialog.go(blacklistjids=names[:999])) == ["The list deny has 999 entries."]
    too_many = Dialog(service, ADMIN, f"{ADMIN_NS}#edit-blacklist")
    await too_many.begin()
    assert condition(await too_many.go(blacklistjids=[*names, "one@more.example"])) == "bad-request/bad-payload"


async def test_person_is_erased_after_a_second_confirmation(service: Component) -> None:
    """[OPS-065] XEP-0133 4.2: the JID is asked for twice."""
    assert condition(await Dialog(service, ALICE, f"{ADMIN_NS}#delete-user").begin()) == "forbidden"
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#delete-user")
    await dialog.begin()
    await dialog.go(accountjids=bare(BOB), nodes="refuse")
    assert condition(await dialog.go(confirm=bare(ALICE))) == "bad-request/bad-payload"

    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#delete-user")
    await dialog.begin()
    await dialog.go(accountjids=bare(BOB), nodes="refuse")
    done = await dialog.go(confirm=bare(BOB))

    assert str(notes(done)[0]).startswith(f"The data of {bare(BOB)} is being erased. ")
    person = Person(bare(BOB))
    job = await service.app.service.store.read(lambda tx: privacy_rows.erasure(tx, person))
    assert (
        job is not None
        and await service.app.service.store.read(lambda tx: privacy_rows.erasure(tx, Person(bare(ALICE)))) is None
    )


@pytest.mark.needs("administration")
async def test_denied_user_is_refused(service: Component) -> None:
    """[OPS-061] Every request of a denied user fails, commands and discovery too; the rights on nodes do not matter."""
    info = "<query xmlns='http://jabber.org/protocol/disco#info' node='tea'/>"
    configure = "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='tea'/></pubsub>"
    for request in (info, configure):
        assert (await service.ask(ALICE, "get", request)).get("type") == "result"
    assert status(await Dialog(service, ALICE, "show-node").begin()) == "executing"
    dialog = Dialog(service, ADMIN, f"{ADMIN_NS}#edit-blacklist")
    await dialog.begin()
    await dialog.go(blacklistjids=[bare(ALICE)])

    for request in (info, configure):
        assert condition(await service.ask(ALICE, "get", request)) == "forbidden"
    assert condition(await Dialog(service, ALICE, "show-node").begin()) == "forbidden"
