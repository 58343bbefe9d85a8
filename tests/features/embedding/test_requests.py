"""The queue of the replies of guests: who sends, sees and decides, its bounds, and that each is published once."""

import asyncio
from dataclasses import replace

import pytest

from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.model import Affiliation
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding import rows
from smartfeeds.features.embedding.guests import (
    DECIDED_S,
    MAX_NAME,
    MAX_TEXT,
    MOST_WAITING,
    WAITING_DAYS,
    QueuePlace,
    ReplyState,
)
from smartfeeds.features.embedding.requests import (
    MOST_DECIDED,
    SWEEP,
    DecideReplies,
    ListReplies,
    RepliesDecided,
    ReplyList,
    SubmitReply,
    decide,
)
from smartfeeds.formats.entry import Entry, read_entry
from smartfeeds.service.answers import ask
from smartfeeds.service.requests import GetItem, ItemShown, Retract
from support.world import ALICE, BOB, OWNER, SERVICE, World, jid
from support.world import entry as entry_xml

DAVE = "dave@example.org"
EVERY = QueuePlace(10**18, "")  # behind each reply


@pytest.fixture
async def queue(world: World) -> World:
    """The feed `comments`, to which guests may reply."""
    await world.create(guest_replies="approval")
    return world


async def send(world: World, reply_id: str, name: str = "Mara", text: str = "Good morning", **more: str) -> None:
    request = SubmitReply(
        ANONYMOUS, SERVICE, more.get("node", "comments"), reply_id, name, text, more.get("target", "")
    )
    await world.service.handle(request)


async def waiting(world: World, actor: str = OWNER) -> list[str]:
    answer = await ask(world.service.handle, ListReplies(jid(actor), SERVICE, "comments"), ReplyList)
    return [reply.reply_id for reply in answer.replies]


async def settle(world: World, actor: str = OWNER, **decision: object) -> tuple[int, int]:
    request = DecideReplies(jid(actor), SERVICE, "comments", **decision)  # type: ignore[arg-type]
    answer = await ask(world.service.handle, request, RepliesDecided)
    return answer.approved, answer.refused


async def entry(world: World, reply_id: str) -> Entry:
    answer = await ask(world.service.handle, GetItem(ANONYMOUS, SERVICE, "comments", f"guest-{reply_id}"), ItemShown)
    return read_entry(answer.item)


async def refused(world: World, condition: Condition, **more: str) -> None:
    with pytest.raises(FeedError) as failure:
        await send(world, "z", **more)
    assert failure.value.condition is condition


async def test_reply_is_published_when_its_owner_approves_it(queue: World) -> None:
    await send(queue, "1", "<Mara>", "Good\n<b>morning</b>", target="tag:blog.example:1")
    assert await waiting(queue) == ["1"]
    assert (await queue.pull("comments")).ids == ""

    assert await settle(queue, approve=("1",)) == (1, 0)
    shown = await entry(queue, "1")
    assert [author.label for author in shown.authors] == ["<Mara> (guest)"]
    assert (shown.title.value, shown.content and shown.content.value) == ("Good", "<b>morning</b>")
    assert [reply.ref for reply in shown.replies_to] == ["tag:blog.example:1"]
    assert await waiting(queue) == []


@pytest.mark.parametrize("base_url", ["https://feeds.example.org", ""])
async def test_program_publishes_a_reply_to_a_page_here_under_its_entry(queue: World, base_url: str) -> None:
    """Programs and commands know no site: the address that the operator has set is that of the pages."""
    queue.service.policy = replace(queue.service.policy, base_url=base_url)
    atom_id, page = "tag:blog.example,2026:q", "https://feeds.example.org/entries/comments/q"
    await queue.publish("q", entry_xml(title="Q", inner=f"<id>{atom_id}</id>"), node="comments")
    await send(queue, "1", target=page)
    await settle(queue, approve=("1",))

    shown = await entry(queue, "1")
    assert [(reply.ref, reply.href) for reply in shown.replies_to] == [(atom_id if base_url else page, page)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "Words"),
        ("mara@example.org", "Words"),
        ("M" * (MAX_NAME + 1), "Words"),
        ("Mara", " "),
        ("Mara", "\x00"),
        ("Mara", "x" * (MAX_TEXT + 1)),
    ],
)
async def test_texts_are_checked_whoever_sends_them(queue: World, name: str, text: str) -> None:
    """The form is one way to the queue, and its bounds are those of the queue."""
    with pytest.raises(FeedError) as failure:
        await send(queue, "1", name, text)
    assert (failure.value.condition, await waiting(queue)) == (Condition.BAD_REQUEST, [])


async def test_texts_are_stored_without_characters_that_turn_or_hide_others(queue: World) -> None:
    await send(queue, "1", "Ma\u202era\n ", " Good\r\nmor\x07ning\u2066 ")

    stored = await queue.service.read(lambda tx, _context: rows.reply(tx, "1"))
    assert stored is not None and (stored.name, stored.text) == ("Mara", "Good\nmorning")


async def test_refused_reply_is_never_published_and_its_texts_are_gone(queue: World) -> None:
    await send(queue, "1", "Mara", "Secret words")
    assert await settle(queue, refuse=("1",)) == (0, 1)

    assert (await queue.pull("comments")).ids == ""
    stored = await queue.service.read(lambda tx, _context: rows.reply(tx, "1"))
    assert stored is not None and (stored.state, stored.name, stored.text) == (ReplyState.REFUSED, "", "")


@pytest.mark.parametrize("decision", ["approve", "refuse", ""])
async def test_form_that_is_sent_again_gives_no_second_reply(queue: World, decision: str) -> None:
    """A browser repeats it, or somebody replays it: before a decision and after it."""
    await send(queue, "1")
    if decision:
        await settle(queue, **{decision: ("1",)})
    for _ in range(3):
        await send(queue, "1", "Other", "Other words")

    assert await waiting(queue) == ([] if decision else ["1"])
    assert (await queue.pull("comments")).ids == ("guest-1" if decision == "approve" else "")


async def test_two_owners_approve_at_once_and_there_is_one_item(queue: World) -> None:
    await queue.affiliate(BOB, "owner")
    await send(queue, "1")

    answers = await asyncio.gather(*(settle(queue, actor, approve=("1",)) for actor in (OWNER, BOB, OWNER, BOB)))
    assert sorted(answers) == [(0, 0), (0, 0), (0, 0), (1, 0)]
    page = await queue.pull("comments")
    assert (page.ids, page.items[0].revision) == ("guest-1", 1)
    with pytest.raises(FeedError) as failure:
        await settle(queue, BOB, refuse=("1",))
    assert failure.value.condition is Condition.CONFLICT


async def test_item_that_was_retracted_does_not_come_back(queue: World) -> None:
    await send(queue, "1")
    await settle(queue, approve=("1",))
    await queue.service.handle(Retract(jid(OWNER), SERVICE, "comments", "guest-1", notify=True))

    await send(queue, "1")
    assert await settle(queue, approve=("1",)) == (0, 0)
    assert (await queue.pull("comments")).ids == ""


async def test_decision_that_fails_changes_nothing(queue: World) -> None:
    """[design section 5] One transaction publishes the item and ends the wait."""
    await send(queue, "1")
    await send(queue, "2")

    with pytest.raises(FeedError) as failure:
        await settle(queue, approve=("1", "missing"))
    assert failure.value.condition is Condition.ITEM_NOT_FOUND
    assert (await waiting(queue), (await queue.pull("comments")).ids) == (["1", "2"], "")


async def test_process_that_dies_in_a_decision_has_not_decided(queue: World) -> None:
    await send(queue, "1")

    class KilledError(Exception):
        """The process ends before the commit."""

    def killed(tx, context):  # type: ignore[no-untyped-def]
        decide(tx, context, DecideReplies(jid(OWNER), SERVICE, "comments", ("1",)))
        raise KilledError

    with pytest.raises(KilledError):
        await queue.service.write(killed)
    assert (await waiting(queue), (await queue.pull("comments")).ids) == (["1"], "")
    assert await settle(queue, approve=("1",)) == (1, 0)


@pytest.mark.parametrize(
    ("affiliation", "may"),
    [
        (Affiliation.OWNER, True),
        (Affiliation.PUBLISHER, True),
        (Affiliation.PUBLISH_ONLY, False),
        (Affiliation.MEMBER, False),
        (Affiliation.NONE, False),
        (Affiliation.OUTCAST, False),
    ],
)
async def test_only_owners_and_publishers_see_and_decide(queue: World, affiliation: Affiliation, may: bool) -> None:
    """Also with a publish model that lets everybody publish."""
    await queue.configure(publish_model="open")
    await queue.affiliate(ALICE, affiliation.value)
    await send(queue, "1")

    if may:
        assert await waiting(queue, ALICE) == ["1"]
        assert await settle(queue, ALICE, approve=("1",)) == (1, 0)
        return
    for doing in (waiting(queue, ALICE), settle(queue, ALICE, approve=("1",)), settle(queue, ALICE, refuse_to=EVERY)):
        with pytest.raises(FeedError) as failure:
            await doing
        assert failure.value.condition is Condition.FORBIDDEN
    assert (await waiting(queue), (await queue.pull("comments", actor=OWNER)).ids) == (["1"], "")


async def test_reply_of_another_feed_cannot_be_decided(queue: World) -> None:
    await queue.create("other", DAVE, guest_replies="approval")
    await send(queue, "1", node="other")

    with pytest.raises(FeedError) as failure:
        await settle(queue, approve=("1",))
    assert failure.value.condition is Condition.ITEM_NOT_FOUND


async def test_feed_takes_no_replies_unless_its_owner_wants_them(world: World) -> None:
    """And none that the guest could not read."""
    await world.create()
    await refused(world, Condition.FORBIDDEN)
    await world.configure(guest_replies="approval")
    await send(world, "1")
    await refused(world, Condition.ITEM_NOT_FOUND, node="missing")
    await refused(world, Condition.ITEM_NOT_FOUND, node="comments?order=created")
    for model, condition in (("authorize", Condition.NOT_SUBSCRIBED_READER), ("whitelist", Condition.ITEM_NOT_FOUND)):
        await world.configure(access_model=model)
        await refused(world, condition)
    await world.configure(access_model="open", guest_replies="no")
    await refused(world, Condition.FORBIDDEN)
    assert await waiting(world) == ["1"]


async def test_generic_node_takes_no_replies(world: World) -> None:
    """Its items may be anything, and their readers may expect anything."""
    await world.create(kind="generic", guest_replies="approval")

    await refused(world, Condition.FORBIDDEN)


async def test_queue_is_bounded_and_can_be_emptied_at_once(queue: World) -> None:
    for number in range(MOST_WAITING):
        await send(queue, f"{number:03}")
    await refused(queue, Condition.BUSY)
    await queue.create("other", DAVE, guest_replies="approval")
    await send(queue, "o", node="other")

    assert await settle(queue, approve=("005",)) == (1, 0)
    await send(queue, "z")
    assert await settle(queue, refuse_to=EVERY) == (0, MOST_WAITING)
    assert (await waiting(queue), (await queue.pull("comments")).ids) == ([], "guest-005")
    await send(queue, "y")
    with pytest.raises(FeedError) as failure:
        await settle(queue, refuse=tuple(f"{number:03}" for number in range(MOST_DECIDED + 1)))
    assert failure.value.condition is Condition.BAD_REQUEST


async def test_replies_end_after_30_days_and_decisions_after_their_form(queue: World) -> None:
    await send(queue, "decided")
    await send(queue, "waits")
    await settle(queue, refuse=("decided",))

    async def stored() -> list[str]:
        await SWEEP.sweep(queue.service)
        found = await queue.service.read(lambda tx, _context: [rows.reply(tx, each) for each in ("decided", "waits")])
        return [reply.reply_id for reply in found if reply is not None]

    queue.clock.move(DECIDED_S - 1)
    assert await stored() == ["decided", "waits"]
    queue.clock.move(1)
    assert await stored() == ["waits"]
    queue.clock.move(WAITING_DAYS * 86_400 - DECIDED_S)
    assert await stored() == []


async def test_deleted_feed_takes_its_queue_along(queue: World) -> None:
    """A feed with the same name is another one."""
    await send(queue, "1")
    await queue.delete()
    await refused(queue, Condition.ITEM_NOT_FOUND)

    await queue.create(guest_replies="approval")
    assert await waiting(queue) == []
    assert await queue.service.read(lambda tx, _context: rows.reply(tx, "1")) is None
