"""Conflicts settled by chat: the list, the versions with their buttons, and the choice."""

import re

import pytest

from smartfeeds.features.conflicts.requests import ListConflicts
from support.chat import body_of, send, write
from support.component import ALICE, BOB, Component, bare
from support.world import jid

A = "http://www.w3.org/2005/Atom"
SX = "http://feedsync.org/2007/feedsync"
RESPONSE = "{urn:xmpp:tmp:quick-response}response"
CODE = re.compile(r"settle plans ([0-9a-f]{6})")


async def change_elsewhere(component: Component, item_id: str, title: str, by: str = "elsewhere") -> None:
    """Publishes an item as another service changed it at the same time."""
    sync = f"<sx:sync xmlns:sx='{SX}' id='{item_id}' updates='1'><sx:history sequence='1' when='{{}}' by='{by}'/>"
    payload = sync.format("2025-12-31T12:00:00Z")
    entry = f"<entry xmlns='{A}'>{payload}</sx:sync><title>{title}</title><summary>as {by} sees it</summary></entry>"
    await component.publish(ALICE, "plans", item_id, entry)


async def titles(component: Component) -> list[str]:
    answer = await component.get(BOB, "<items node='plans'/>")
    return [str(one.findtext(f"{{{A}}}title")) for one in answer.iter(f"{{{A}}}entry")]


@pytest.fixture
async def plans(component: Component) -> Component:
    """Alice's feed, in which the item `market` was changed here and elsewhere."""
    await component.create(ALICE, "plans")
    await component.publish(ALICE, "plans", "market")
    await change_elsewhere(component, "market", "Market on Monday")
    return component


async def code(component: Component) -> str:
    """The code of the first item in the list."""
    (listed,) = await write(component, ALICE, "conflicts plans")
    match = CODE.search(listed)
    assert match is not None, listed
    return match[1]


async def test_list_names_the_next_step(plans: Component) -> None:
    (message,) = await send(plans, ALICE, "conflicts plans")
    step = f"settle plans {await code(plans)}"

    assert body_of(message) == f"Items with conflicts in plans:\n- market: 2 versions\n  {step}"
    assert [one.get("value") for one in message.iter(RESPONSE)] == [step]


async def test_versions_are_shown_with_a_button_for_each(plans: Component) -> None:
    (message,) = await send(plans, ALICE, f"settle plans {await code(plans)}")
    step = f"settle plans {await code(plans)}"

    assert body_of(message) == (
        "“market” was changed in two places at once. Readers see version 1 now.\n"
        "1. you, 2026-01-01 00:00: market\n"
        "2. elsewhere, 2025-12-31 12:00: Market on Monday as elsewhere sees it\n"
        "To combine the versions, write your own text behind a number.\n"
        f"To keep version 1: {step} 1"
    )
    assert [(one.get("value"), one.get("label")) for one in message.iter(RESPONSE)] == [
        (f"{step} 1", "Keep 1"),
        (f"{step} 2", "Keep 2"),
    ]


@pytest.mark.parametrize(
    ("choice", "title"),
    [("1", "market"), ("mine", "market"), ("2", "Market on Monday"), ("theirs", "Market on Monday")],
)
async def test_choice_settles(plans: Component, choice: str, title: str) -> None:
    (answer,) = await write(plans, ALICE, f"settle plans {await code(plans)} {choice}")

    assert answer == f"Settled. plans has version {1 if title == 'market' else 2} now: {title}"
    assert await titles(plans) == [title]
    assert await write(plans, ALICE, "conflicts plans") == ["No item of plans has a conflict."]
    assert await write(plans, ALICE, "settle plans") == ["No item of plans has a conflict."]


async def test_text_behind_the_number_combines_the_versions(plans: Component) -> None:
    """[FS-070] Its first line is the title; it is an edit by the user who wrote it."""
    text = "Market on Monday at noon\nBring bags"
    (answer,) = await write(plans, ALICE, f"settle plans {await code(plans)} 2 {text}")

    assert answer == "Settled. plans has your text now: Market on Monday at noon"
    assert await titles(plans) == ["Market on Monday at noon"]
    assert await titles_left(plans) == []


async def test_without_a_code_the_first_item_is_shown(plans: Component) -> None:
    assert await write(plans, ALICE, "settle plans") == await write(plans, ALICE, f"settle plans {await code(plans)}")


async def test_version_that_nobody_has_seen_is_not_decided(plans: Component) -> None:
    """[A-62] The code is that of the versions that were shown."""
    former = await code(plans)
    await change_elsewhere(plans, "market", "Third", "third")
    (answer,) = await write(plans, ALICE, f"settle plans {former} 2")

    assert answer == "The item has changed meanwhile. To see its versions: conflicts plans"
    assert await code(plans) != former


async def test_mine_is_refused_where_it_is_not_clear(plans: Component) -> None:
    await change_elsewhere(plans, "market", "Third", "third")
    (answer,) = await write(plans, ALICE, f"settle plans {await code(plans)} theirs")

    assert answer == "That is not clear here. Write the number of the version."


async def test_reader_sees_the_versions_and_settles_nothing(plans: Component) -> None:
    """One rule system: the use case refuses, as it does over XMPP and HTTP."""
    assert (await write(plans, BOB, "settle plans"))[0].startswith("“market” was changed")
    assert await write(plans, BOB, f"settle plans {await code(plans)} 2") == [
        "You may not do that. The owner of plans may: alice@example.org"
    ]
    await plans.affiliate(ALICE, "plans", BOB, "outcast")
    assert (await write(plans, BOB, "settle plans"))[0] == "You may not do that. Ask the owner of plans."
    assert await titles_left(plans) == ["market"]


async def titles_left(component: Component) -> list[str]:
    """The ids of the items that are still in conflict."""
    request = ListConflicts(jid(ALICE), "feeds.example.org", "plans")
    return [entry.item.id for entry in (await component.app.handle(request)).entries]  # type: ignore[attr-defined]


@pytest.mark.parametrize("rest", ["", "plans x y z", "nowhere", "plans ffffff 1", "plans {code} 0", "plans {code} 3",
                                  "plans {code} ²", "plans {code} 99999999999", "plans?order=created"])  # fmt: skip
async def test_wrong_arguments_settle_nothing(plans: Component, rest: str) -> None:
    (answer,) = await write(plans, ALICE, f"settle {rest.format(code=await code(plans))}")

    assert answer.startswith(("Write: settle FEED", "There is no such feed", "The item has changed", "That did not"))
    assert await code(plans)


async def test_title_with_marks_is_text(plans: Component) -> None:
    await change_elsewhere(plans, "market", "{0.__class__} &lt;b&gt; %s\u202e")
    (answer,) = await write(plans, ALICE, "settle plans")

    assert "{0.__class__} <b> %s" in answer and "\u202e" not in answer


async def test_german(plans: Component) -> None:
    (answer,) = await write(plans, ALICE, "entscheide plans", xml_lang="de")

    assert answer.startswith("„market“ wurde an zwei Orten zugleich geändert. Leser sehen jetzt Fassung 1.\n1. du, ")
    assert answer.endswith(f"Um Fassung 1 zu behalten: entscheide plans {await code(plans)} 1")
    assert bare(ALICE) not in answer
