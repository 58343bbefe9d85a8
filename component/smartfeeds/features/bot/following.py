"""The commands that change what is delivered: subscribe, unsubscribe, quiet, digest, language, join, leave, follow.

A follow by chat is an ordinary subscription with a mark (`service.chat_follows`), so access, limits and approval hold
for it.
"""

import asyncio
from dataclasses import replace
from functools import partial

from smartfeeds.chat.commands import NAME_CHARACTERS, ChatReply, Offer, UsageError
from smartfeeds.chat.grammar import arguments
from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.model import SubscriptionState
from smartfeeds.core.text import cut
from smartfeeds.features.bot.chat import DAILY, Digest
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.reading import view_of
from smartfeeds.features.bot.render import feed_name, render_item
from smartfeeds.features.bot.schedule import find_zone, format_minute, parse_minute, parse_quiet
from smartfeeds.features.bot.usages import HELP, LATEST, SUBSCRIPTIONS, UNSUBSCRIBE
from smartfeeds.service.chat_follows import follow, unfollow
from smartfeeds.texts import LANGUAGES, N_, Texts

OFF = frozenset({"off", "aus"})
_EVERY_DAY = frozenset({"daily", "täglich"})
_FOR = frozenset({"for", "für"})
# The names of the weekdays, Monday first, by which digests are requested and confirmed.
_WEEKDAYS = (
    N_("monday"),
    N_("tuesday"),
    N_("wednesday"),
    N_("thursday"),
    N_("friday"),
    N_("saturday"),
    N_("sunday"),
)
_LANGUAGE_NAMES = {"en": "English", "de": "Deutsch"}


async def subscribe(c: Conversation, rest: str) -> ChatReply:
    """Delivers the new items of a feed. With `for JID` at the end, an admin of the service subscribes that person."""
    tokens = arguments(rest)
    person: Jid | None = None
    if c.is_admin and len(tokens) > 2 and tokens[-2].casefold() in _FOR:
        person = parse_jid(tokens.pop())
        tokens.pop()
        if person is None or not person.local:
            raise UsageError
    name = view_of(c, tokens)
    actor = person.bare if person is not None else c.actor
    answer = await c.tools.host.service.write(partial(follow, actor=actor, node_name=name), turn=c.jid)
    c.tools.host.dispatcher.add(answer.consumer)
    if person is None:
        await c.remember_language()
        if answer.is_stranger and not c.in_room:
            c.tools.introduce(c.jid)
    feed = feed_name(answer.node)
    stop = c.command(UNSUBSCRIBE, name)
    if answer.state is SubscriptionState.PENDING:
        return ChatReply(c.say("Your request to follow {feed} waits for its owner.", feed=feed), (Offer(stop),))
    if person is not None:
        text = N_("{person} follows {feed} already.") if answer.is_known else N_("{person} follows {feed} now.")
        return ChatReply(c.say(text, person=person.bare_text, feed=feed))
    if answer.is_known:
        text = c.say("You follow {feed} already. To stop: {command}", feed=feed, command=stop)
        return ChatReply(text, (c.offer(LATEST), Offer(stop)))
    lines = [c.say("You follow {feed} now. New items arrive here. To stop: {command}", feed=feed, command=stop)]
    if answer.last is not None:
        lines += ["", await asyncio.to_thread(render_item, c.texts, c.tools.links, answer.node, answer.last)]
    return ChatReply("\n".join(lines), (c.offer(LATEST), Offer(stop)))


async def unsubscribe(c: Conversation, rest: str) -> ChatReply:
    """Ends the delivery of a feed."""
    name = view_of(c, arguments(rest))
    consumers = await c.tools.host.service.write(partial(unfollow, actor=c.actor, node_name=name), turn=c.jid)
    # The deliverer finds that nothing is followed any more, and the consumer is removed.
    c.hurry(consumers)
    return ChatReply(c.say("You no longer follow {feed}.", feed=cut(name, NAME_CHARACTERS)), (c.offer(SUBSCRIPTIONS),))


async def quiet(c: Conversation, rest: str) -> ChatReply:
    """Sets the hours in which nothing is delivered, and the time zone."""
    tokens = arguments(rest)
    if len(tokens) == 1 and tokens[0].casefold() in OFF:
        await c.save(lambda one: replace(one, quiet=None))
        return ChatReply(c.say("There are no quiet hours any more."))
    hours = parse_quiet(tokens[0]) if tokens else None
    if hours is None or len(tokens) > 2:
        raise UsageError
    zone = _zone(c, tokens[1:])
    await c.save(lambda one: replace(one, quiet=hours, zone=zone if tokens[1:] else one.zone))
    begin, end = format_minute(hours.begin), format_minute(hours.end)
    text = c.say(
        "Nothing is delivered from {begin} to {end} ({zone}). The items come afterwards.",
        begin=begin,
        end=end,
        zone=zone,
    )
    return ChatReply(
        f"{text}\n{_zone_hint(c, zone, c.say('quiet 22-7 Europe/Berlin'))}".strip(), (Offer(c.say("quiet off")),)
    )


async def digest(c: Conversation, rest: str) -> ChatReply:
    """Sets the time at which all new items are delivered at once."""
    tokens = arguments(rest)
    if len(tokens) == 1 and tokens[0].casefold() in OFF:
        await c.save(lambda one: replace(one, digest=None))
        return ChatReply(c.say("New items arrive as soon as they are published."))
    if not 2 <= len(tokens) <= 3:
        raise UsageError
    weekday, minute = _weekday(c, tokens[0]), parse_minute(tokens[1])
    if weekday is None or minute is None:
        raise UsageError
    zone = _zone(c, tokens[2:])
    await c.save(lambda one: replace(one, digest=Digest(weekday, minute), zone=zone if tokens[2:] else one.zone))
    day = c.say("every day") if weekday == DAILY else c.say(_WEEKDAYS[weekday])
    text = c.say("New items arrive together: {day} at {time} ({zone}).", day=day, time=format_minute(minute), zone=zone)
    return ChatReply(
        f"{text}\n{_zone_hint(c, zone, c.say('digest daily 8:00 Europe/Berlin'))}".strip(),
        (Offer(c.say("digest off")),),
    )


async def language(c: Conversation, rest: str) -> ChatReply:
    """Sets the language of the bot."""
    code = rest.strip().casefold()
    if code not in LANGUAGES:
        names = ", ".join(f"{code} ({_LANGUAGE_NAMES.get(code, code)})" for code in LANGUAGES)
        raise UsageError(c.say("The languages are: {names}", names=names))
    await c.save(lambda one: replace(one, language=code))
    c = replace(c, texts=Texts(code))
    return ChatReply(c.say("I speak English with you now."), (c.offer(HELP),))


async def join(c: Conversation, rest: str) -> ChatReply:
    """Brings the bot into a room."""
    room = parse_jid(rest.strip())
    if room is None or not room.local or c.in_room:
        raise UsageError
    refusal = await c.tools.rooms.request(room.bare, c.actor, trusted=c.is_admin)
    return ChatReply(
        c.say(refusal) if refusal else c.say("I am entering {room}.", room=cut(room.bare_text, NAME_CHARACTERS))
    )


async def leave(c: Conversation, rest: str) -> ChatReply:
    """Takes the bot out of the room in which the command is given, or out of a room that an admin names."""
    room = c.actor if c.in_room else parse_jid(rest.strip())
    if room is None or (not c.in_room and not (c.is_admin and c.tools.rooms.knows(room.bare_text))):
        raise UsageError
    await c.tools.rooms.leave(room.bare_text)
    return ChatReply("" if c.in_room else c.say("I left {room}.", room=cut(room.bare_text, NAME_CHARACTERS)))


def _zone(c: Conversation, tokens: list[str]) -> str:
    """The time zone in the arguments, or that of the settings. Raises UsageError."""
    if not tokens:
        return c.settings.zone
    zone = find_zone(tokens[0])
    if zone is None:
        raise UsageError(c.say("I do not know this time zone. Write it as Europe/Berlin or America/New_York."))
    return zone


def _zone_hint(c: Conversation, zone: str, example: str) -> str:
    if zone != "UTC":
        return ""
    return c.say("For your own time zone: {command}", command=example)


def _weekday(c: Conversation, text: str) -> int | None:
    """The weekday of a text in English or in the language of the conversation."""
    word = text.casefold()
    if word in _EVERY_DAY:
        return DAILY
    for number, name in enumerate(_WEEKDAYS):
        if word in (name, c.say(name).casefold()):
            return number
    return None
