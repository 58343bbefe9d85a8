"""The part by which other features send messages to people who use the bot: who gets them, when, and how many."""

from smartfeeds.chat.commands import ChatReply, Offer
from smartfeeds.chat.notices import ChatNotices
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.bot import rows
from smartfeeds.features.bot.chat import ChatRow, ChatSettings, QuietHours
from smartfeeds.features.bot.notices import RATE, WAITING
from smartfeeds.service.context import Context
from smartfeeds.store.base import WriteTx
from smartfeeds.texts import Texts
from support.chat import body_of, write
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, Starter, bare
from support.world import jid

DAY_S = 86_400
RESPONSE = "{urn:xmpp:tmp:quick-response}response"
ROOM = "club@rooms.example.org"


def tea(texts: Texts) -> ChatReply:
    """A message whose text is one of the program, so that it is there in every language."""
    return ChatReply(texts.say("Feeds:"), (Offer("list"), Offer("help", "What?")))


def notify(component: Component, *people: str) -> None:
    """Sends the message to people, and waits for nothing."""
    component.app.parts.get(ChatNotices).send(tuple(jid(bare(person)) for person in people), tea)


async def received(component: Component, address: str) -> list[str]:
    return [body_of(message) for message in await component.events(address)]


async def test_users_of_the_bot_get_a_message_with_buttons_in_their_language(component: Component) -> None:
    await write(component, ALICE, "language en")
    await write(component, BOB, "language de")
    notify(component, ALICE, BOB, CAROL)
    (message,) = await component.events(bare(ALICE))

    assert (body_of(message), message.get("from"), message.get("type")) == ("Feeds:", DOMAIN, "chat")
    assert message.get("id")
    offers = [(each.get("value"), each.get("label")) for each in message.iter(RESPONSE)]
    assert offers == [("list", "list"), ("help", "What?")]
    assert [await received(component, bare(user)) for user in (BOB, CAROL)] == [["Feeds:"], []]


async def test_room_and_blocked_person_get_nothing(component: Component) -> None:
    """A room may own a feed, but its occupants need not see what waits."""
    await write(component, ALICE, "language en")

    def store(tx: WriteTx, _context: Context) -> None:
        rows.put(tx, ChatRow(ROOM, room=True))
        tx.change_blocks()
        tx.change("INSERT INTO block (kind, name) VALUES ('deny', ?)", (bare(ALICE),))

    await component.app.service.write(store)
    notify(component, ROOM, ALICE)

    assert [await received(component, address) for address in (ROOM, bare(ALICE))] == [[], []]


async def test_messages_have_a_rate_for_each_person(component: Component) -> None:
    await write(component, ALICE, "language en")
    await write(component, BOB, "language en")
    for _ in range(int(RATE.burst) + 5):
        notify(component, ALICE)
    notify(component, BOB)

    assert len(await received(component, bare(ALICE))) == RATE.burst
    assert len(await received(component, bare(BOB))) == 1


async def test_message_waits_for_the_end_of_quiet_hours(component: Component) -> None:
    """A tenth of a second before midnight, when these hours end."""
    await write(component, ALICE, "quiet 20-24 UTC")
    component.clock.advance(DAY_S - 0.1 - component.clock.now_us / US_PER_S % DAY_S)
    notify(component, ALICE)
    (message,) = await component.next_event(bare(ALICE))

    assert body_of(message) == "Feeds:"


async def test_number_of_messages_that_wait_is_bounded(component: Component) -> None:
    people = [f"p{number}@d{number % 50}.example/x" for number in range(WAITING + 10)]

    def store(tx: WriteTx, _context: Context) -> None:
        for person in people:
            rows.put(tx, ChatRow(bare(person), settings=ChatSettings(quiet=QuietHours(0, 23 * 60 + 59))))

    await component.app.service.write(store)
    notify(component, *people)
    await component.settle()

    names = [task.get_name() for task in component.app.tasks]
    assert names.count("notice after quiet hours") == WAITING


async def test_bot_that_is_off_sends_none(start: Starter) -> None:
    component = await start(bot={"enabled": False})

    assert component.app.parts.find(ChatNotices) is None
