"""Requests to follow a feed that needs approval, by chat: for the person who asks, and for the owners."""

import pytest

from support.chat import body_of, deliver, write
from support.component import ALICE, BOB, CAROL, DOMAIN, OWNER, Component, Element, bare

RESPONSE = "{urn:xmpp:tmp:quick-response}response"


@pytest.fixture
async def club(component: Component) -> Component:
    """Alice, who uses the bot, owns the feed `club`, which needs approval."""
    await component.create(ALICE, "club", access_model="authorize", title="The Club")
    await write(component, ALICE, "language en")
    return component


async def chats(component: Component, user: str) -> list[Element]:
    """The chat messages that a user was sent since the last call, without notifications and forms."""
    messages = await component.events(bare(user)) + await component.events(user)
    return [one for one in messages if one.get("type") == "chat"]


async def bodies(component: Component, user: str) -> list[str]:
    return [body_of(one) for one in await chats(component, user)]


async def ask(component: Component, user: str = BOB) -> None:
    """A user asks by chat to follow the feed."""
    (answer,) = await write(component, user, "subscribe club")
    assert answer == "Your request to follow The Club (club) waits for its owner."


async def test_owner_is_asked_by_chat_beside_the_form(club: Component) -> None:
    await ask(club)
    messages = await club.events(bare(ALICE))

    assert [one.get("type") for one in messages] == ["normal", "chat"]
    chat = messages[1]
    allow, refuse = f"allow club {bare(BOB)}", f"refuse club {bare(BOB)}"
    assert body_of(chat) == f"{bare(BOB)} asks to follow The Club (club). To allow it: {allow}"
    offers = [(one.get("value"), one.get("label")) for one in chat.iter(RESPONSE)]
    assert offers == [(allow, "Allow"), (refuse, "Refuse")]


async def test_allowed_person_learns_it_and_receives_what_follows(club: Component) -> None:
    await ask(club)
    assert await write(club, ALICE, f"allow club {bare(BOB)}") == [f"{bare(BOB)} may follow the feed now."]
    (message,) = await chats(club, BOB)
    assert body_of(message) == "You may follow The Club (club) now. New items arrive here."
    assert [one.get("value") for one in message.iter(RESPONSE)] == ["latest club", "unsubscribe club"]
    await club.publish(ALICE, "club", "one")

    assert [text.split("\n")[0] for text in await bodies(club, BOB)] == ["one"]


async def test_refused_person_learns_it(club: Component) -> None:
    await ask(club)
    assert await write(club, ALICE, f"refuse club {bare(BOB)}") == [f"The request of {bare(BOB)} is refused."]
    assert await bodies(club, BOB) == ["Your request to follow The Club (club) was refused."]
    assert await write(club, BOB, "subscriptions") == ["You follow no feed yet."]


@pytest.mark.parametrize(("state", "text"), [("subscribed", "You may follow"), ("none", "Your request to follow")])
async def test_answer_by_another_way_is_told_by_chat_too(club: Component, state: str, text: str) -> None:
    """There is one rule system, so the way of the owner does not matter."""
    await ask(club)
    entry = f"<subscription jid='{bare(BOB)}' subscription='{state}'/>"
    await club.owner_set(ALICE, f"<subscriptions node='club'>{entry}</subscriptions>")
    (message,) = await bodies(club, BOB)

    assert message.startswith(text)


async def test_person_who_withdraws_the_request_hears_of_no_refusal(club: Component) -> None:
    await ask(club)
    assert await write(club, BOB, "unsubscribe club") == ["You no longer follow club."]
    assert await bodies(club, BOB) == []
    (answer,) = await write(club, ALICE, f"allow club {bare(BOB)}")
    assert answer.startswith("This request waits no more.")


async def test_only_owners_answer_and_only_what_waits(club: Component) -> None:
    await ask(club)
    for command in (f"allow club {bare(BOB)}", f"refuse club {bare(BOB)}"):
        assert (await write(club, CAROL, command))[0].startswith("You may not do that.")
        assert (await write(club, BOB, command))[0].startswith("You may not do that.")
    assert await bodies(club, BOB) == []
    for _ in range(2):
        (answer,) = await write(club, ALICE, f"allow club {bare(CAROL)}")
        assert answer == "This request waits no more. Another owner answered it, or it was withdrawn."
    for rest in ("", "club", "club nobody@ x", "club @", "club a b", "x" * 4_000):
        (answer,) = await write(club, ALICE, f"allow {rest}")
        assert answer.startswith(("Write: allow FEED ADDRESS", "There is no such feed", "This request waits no more"))
    assert await write(club, BOB, "subscriptions") == ["You follow:\n- club: The Club - waits for approval"]


async def test_requests_are_shown_again(club: Component) -> None:
    await ask(club)
    await ask(club, CAROL)
    await club.events(bare(ALICE))
    await deliver(club, ALICE, "requests")
    texts = await bodies(club, ALICE)

    assert sorted(text.partition(" asks")[0] for text in texts) == [
        "2 requests wait:",
        bare(BOB),
        bare(CAROL),
    ]
    assert await write(club, BOB, "requests") == ["No request waits for you."]


async def test_request_of_a_stranger_with_a_deceptive_address(club: Component) -> None:
    """A resource may have blanks and quotation marks, which must not make another command of the button."""
    eve = "eve@example.org"
    for resource in ('x" carol@example.org', "x y"):
        jid = f"{eve}/{resource}".replace('"', "&quot;")
        await club.set(f"{eve}/{resource}", f'<subscribe node="club" jid="{jid}"/>')
    for message in await chats(club, ALICE):
        (answer,) = await write(club, ALICE, str(message.find(RESPONSE).get("value")))  # type: ignore[union-attr]
        assert eve in answer or answer.startswith(("This request waits no more", "Write: allow"))
    answer = await club.owner_get(ALICE, "<subscriptions node='club'/>")
    jids = {one.get("jid") for one in answer.iter(f"{{{OWNER}}}subscription")}
    assert not [jid for jid in jids if jid and not jid.startswith(eve)]


async def test_owner_and_subscriber_who_do_not_use_the_bot_get_no_chat(component: Component) -> None:
    """The bot writes only to people who wrote to it."""
    await component.create(ALICE, "club", access_model="authorize")
    await component.subscribe(BOB, "club")
    assert await bodies(component, ALICE) == []
    await component.set(BOB, f"<unsubscribe node='club' jid='{bare(BOB)}'/>")
    assert await bodies(component, ALICE) == await bodies(component, BOB) == []


async def test_approval_in_german(club: Component) -> None:
    await write(club, ALICE, "language de")
    await write(club, BOB, "abonniere club", xml_lang="de")
    (message,) = await chats(club, ALICE)

    assert body_of(message) == (
        f"{bare(BOB)} möchte The Club (club) abonnieren. Zum Erlauben: erlaube club {bare(BOB)}"
    )
    assert [one.get("label") for one in message.iter(RESPONSE)] == ["Erlauben", "Ablehnen"]
    await write(club, ALICE, f"erlaube club {bare(BOB)}")
    assert await bodies(club, BOB) == ["Du hast jetzt The Club (club) abonniert. Neue Einträge kommen hier an."]
    assert message.get("from") == DOMAIN
