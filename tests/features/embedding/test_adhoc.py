"""The ad-hoc command `guest-replies`: its form, decisions by those who may, and what it refuses."""

import pytest
from lxml import etree

from features.embedding.sending import decide, guest_feed, submit, waiting
from smartfeeds.features.embedding.adhoc import LISTED
from smartfeeds.features.embedding.guests import MAX_NAME, MAX_TEXT, QUOTED_CHARACTERS
from smartfeeds.features.embedding.requests import MOST_DECIDED
from support.component import ALICE, BOB, CAROL, EVE, NS, Component, Element, fields, ok, text_of
from support.dialog import Dialog, condition, listed, notes

ALL = ("publish", "refuse", "later")
STANZA_BYTES = 65_536  # a server that accepts no larger stanza


@pytest.fixture
async def queue(component: Component) -> Component:
    """The feed `comments` of Alice, of which Carol is a publisher. Carol owns no node."""
    await guest_feed(component)
    await component.affiliate(ALICE, "comments", CAROL, "publisher")
    return component


async def shown(component: Component, user: str = ALICE, node: str = "comments") -> tuple[Dialog, Element]:
    """The command with the form of the replies, or what comes in its place."""
    dialog = Dialog(component, user, "guest-replies")
    ok(await dialog.begin())
    return dialog, await dialog.go(node=node)


def replies(answer: Element) -> list[str]:
    """The ids of the replies in a form."""
    return [var.removeprefix("reply-") for var in fields(answer) if var.startswith("reply-")]


def texts(answer: Element) -> list[str]:
    """The texts for reading in a form."""
    return [str(each.findtext("x:value", "", NS)) for each in answer.iterfind(".//x:field[@type='fixed']", NS)]


async def choose(dialog: Dialog, **choices: str) -> Element:
    return await dialog.go(**{f"reply-{reply_id}": choice for reply_id, choice in choices.items()})


async def test_form_has_each_reply_with_its_decision(queue: Component) -> None:
    first = await submit(queue, "Good\nmorning")
    second = await submit(queue, "To decide: x", "Eve")
    _, answer = await shown(queue)

    assert (texts(answer), replies(answer)) == (["> Mara: Good morning", "> Eve: To decide: x"], [first, second])
    for reply_id in (first, second):
        (field,) = answer.iterfind(f".//x:field[@var='reply-{reply_id}']", NS)
        assert field.get("label") == "Reply of 2026-01-01T00:00:00Z"
        assert [option.findtext("x:value", "", NS) for option in field.iterfind("x:option", NS)] == sorted(
            ALL, key=("later", "publish", "refuse").index
        )
        assert field.findtext("x:value", "", NS) == "later"


@pytest.mark.parametrize("user", [ALICE, CAROL])
async def test_owner_and_publisher_decide_several_at_once(queue: Component, user: str) -> None:
    good, bad, other = [await submit(queue, text) for text in ("Good", "Bad", "Perhaps")]
    dialog, _ = await shown(queue, user)
    answer = await choose(dialog, **{good: "publish", bad: "refuse"})

    assert notes(answer) == ["Published 1, refused 1."]
    assert (await queue.item_ids(ALICE, "comments"), await waiting(queue)) == ([f"guest-{good}"], [other])


async def test_nothing_is_decided_by_default(queue: Component) -> None:
    reply_id = await submit(queue)
    dialog, _ = await shown(queue)

    assert notes(await dialog.go()) == ["Published 0, refused 0."]
    assert await waiting(queue) == [reply_id]
    await decide(queue, refuse=(reply_id,))
    assert notes((await shown(queue))[1]) == ["No reply of a guest waits."]


async def test_command_is_for_people_who_own_a_node_or_publish_in_it(queue: Component) -> None:
    assert ["guest-replies" in await listed(queue, user) for user in (ALICE, CAROL, BOB, EVE)] == [
        *(True, True, False, False)
    ]
    assert condition(await Dialog(queue, BOB, "guest-replies").begin()) == "forbidden"


async def test_people_who_may_not_decide_see_and_decide_nothing(queue: Component) -> None:
    """Bob owns another node. Also with a form of the time when he was a publisher."""
    user = BOB
    await guest_feed(queue, "other", user)
    reply_id = await submit(queue, "Secret words")
    await queue.configure(ALICE, "comments", publish_model="open")
    for affiliation in ("none", "member", "publish-only", "outcast"):
        await queue.affiliate(ALICE, "comments", user, affiliation)
        _, answer = await shown(queue, user)
        assert condition(answer) == "forbidden", affiliation
        assert "Secret" not in text_of(answer)
    await queue.affiliate(ALICE, "comments", user, "publisher")
    dialog, _ = await shown(queue, user)
    await queue.affiliate(ALICE, "comments", user, "none")

    assert condition(await choose(dialog, **{reply_id: "publish"})) == "forbidden"
    assert (await waiting(queue), await queue.item_ids(ALICE, "comments")) == ([reply_id], [])


async def test_two_people_decide_in_the_same_way(queue: Component) -> None:
    first, second = await submit(queue), await submit(queue)
    dialogs = [(await shown(queue, user))[0] for user in (ALICE, CAROL)]
    answers = [await choose(dialog, **{first: "publish", second: "refuse"}) for dialog in dialogs]

    assert [notes(answer) for answer in answers] == [
        ["Published 1, refused 1."],
        ["Published 0, refused 0.", "Somebody else had decided 2 in the same way."],
    ]
    assert await queue.item_ids(ALICE, "comments") == [f"guest-{first}"]


@pytest.mark.parametrize(("one", "other"), [("publish", "refuse"), ("refuse", "publish")])
async def test_two_people_decide_differently_and_the_first_one_counts(queue: Component, one: str, other: str) -> None:
    """The second person keeps the form, and what else it decides is not lost: it is not done in part."""
    first, second = await submit(queue), await submit(queue)
    (alice, _), (carol, _) = await shown(queue, ALICE), await shown(queue, CAROL)
    ok(await choose(alice, **{first: one}))
    answer = await choose(carol, **{first: other, second: "publish"})
    assert (condition(answer), "decided otherwise; start the command again" in text_of(answer)) == (
        "conflict",
        True,
    )
    assert await waiting(queue) == [second]

    assert notes(await choose(carol, **{first: "later", second: "publish"})) == ["Published 1, refused 0."]
    published = [first, second] if one == "publish" else [second]
    assert sorted(await queue.item_ids(ALICE, "comments")) == sorted(f"guest-{each}" for each in published)


async def test_wrong_fields_decide_nothing(queue: Component) -> None:
    reply_id = await submit(queue)
    await guest_feed(queue, "other")
    foreign = await submit(queue, node="other")
    for choices, expected in (
        ({reply_id: "perhaps"}, "bad-request/bad-payload"),
        ({reply_id: ""}, "bad-request/bad-payload"),
        ({"missing": "publish"}, "item-not-found"),
        ({"": "publish"}, "item-not-found"),
        ({foreign: "publish"}, "item-not-found"),
        ({f"{number}": "refuse" for number in range(MOST_DECIDED + 1)}, "bad-request"),
    ):
        dialog, _ = await shown(queue)
        assert condition(await choose(dialog, **choices)) == expected, choices
    for node in ("nowhere", "comments?order=created"):
        assert condition((await shown(queue, ALICE, node))[1]) == "item-not-found"

    assert (await waiting(queue), await queue.item_ids(ALICE, "comments")) == ([reply_id], [])


async def test_long_queue_of_long_replies_fits_into_a_stanza(queue: Component) -> None:
    """With the characters that take most bytes on the wire."""
    ids = [await submit(queue, "'" * MAX_TEXT, "\U00010348" * MAX_NAME) for _ in range(LISTED + 2)]
    _, answer = await shown(queue)
    wire = etree.tostring(answer, encoding="unicode")

    assert replies(answer) == ids[:LISTED]
    assert {len(text) for text in texts(answer)} == {QUOTED_CHARACTERS + 2}
    assert f"The form shows {LISTED} of {LISTED + 2} replies; decide on some to see the others." in wire
    assert 50_000 < len(wire.replace("'", "&#39;").encode()) < STANZA_BYTES
