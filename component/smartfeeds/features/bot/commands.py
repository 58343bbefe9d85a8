"""The chat commands of the kernel as one table, and how a message becomes a command.

A new command is a new row. The help, the look-up by name and the tests follow from the rows. Features bring tables of
their own (`chat.commands`).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

from smartfeeds.chat.commands import ChatCommand, ChatReply, CommandRights, RefusalError, UsageError
from smartfeeds.chat.grammar import split_command
from smartfeeds.errors import FeedError
from smartfeeds.features.bot import approvals, following, news, outlines, posting, reading, usages
from smartfeeds.features.bot.conversation import Conversation
from smartfeeds.features.bot.delivery import parse_message_id
from smartfeeds.features.bot.refusals import refusal
from smartfeeds.texts import N_

# Greetings in English and German, folded. Commands have priority.
_GREETINGS = frozenset(
    {
        *("hi", "hello", "hey", "hiya", "howdy", "greetings"),
        *("good morning", "good afternoon", "good evening", "good day"),
        *("hallo", "hallöchen", "huhu", "moin", "moin moin", "servus", "tach", "grüezi", "grüss gott"),
        *("guten morgen", "guten tag", "guten abend", "schönen guten tag"),
    }
)
_START = "start"  # the button with which some clients begin a chat with a bot
_LONGEST_GREETING = max(len(greeting.split()) for greeting in _GREETINGS)
_NAME_WORDS = 2  # of the one who is greeted: "Hello, dear bot"
_GREETED_CHARACTERS = 100
_SIGNS = re.compile(r"[^\w'-]+")


def is_greeting(text: str) -> bool:
    """Whether a message only greets: nothing but signs, or a greeting in any case, with a name behind it or without."""
    if len(text) > _GREETED_CHARACTERS:
        return False
    words = _SIGNS.sub(" ", unicodedata.normalize("NFC", text).casefold()).split()
    for count in range(min(len(words), _LONGEST_GREETING), 0, -1):
        if " ".join(words[:count]) in _GREETINGS:
            return len(words) - count <= _NAME_WORDS
    return words in ([], [_START])


async def greet(c: Conversation) -> ChatReply:
    """Answers a greeting in three lines: what the bot does, the first steps, and where the rest is."""
    first = c.say("I deliver feeds by chat. What is new in a blog or a feed arrives here.")
    to_list, to_subscribe, to_help = (c.command(usage) for usage in (usages.LIST, usages.SUBSCRIBE, usages.HELP))
    follow = c.tools.commands.get("follow")  # blogs of other servers are a feature of their own
    if follow is None:
        steps = c.say(
            "Write {list} to see the feeds here, and {subscribe} FEED to get one.",
            list=to_list,
            subscribe=to_subscribe,
        )
    else:
        steps = c.say(
            "Write {list} to see the feeds here, {subscribe} FEED to get one, or {follow} ADDRESS to get a blog of the "
            "web.",
            list=to_list,
            subscribe=to_subscribe,
            follow=c.command(follow.usage),
        )
    last = c.say("Write {help} to see all that I can do.", help=to_help)
    return ChatReply("\n".join((first, steps, last)), (c.offer(usages.LIST), c.offer(usages.HELP)))


async def explain_commands(c: Conversation, rest: str) -> ChatReply:
    """Explains one command, or lists all."""
    commands = c.tools.commands
    command = commands.get(split_command(rest).word)
    if command is not None:
        return ChatReply(f"{c.say(command.usage)}\n{c.say(command.summary)}")
    lines = [c.say("I deliver feeds by chat. You can write:")]
    lines += [
        f"{c.say(row.usage)} - {c.say(row.summary)}"
        for word, row in commands.items()
        if word == row.name and not row.hidden
    ]
    lines.append(c.say("FEED is the name of a feed. Reply to an item to answer it. Details: help COMMAND"))
    return ChatReply(
        "\n".join(lines), tuple(c.offer(usage) for usage in (usages.LIST, usages.LATEST, usages.SUBSCRIPTIONS))
    )


COMMANDS: tuple[ChatCommand, ...] = (
    ChatCommand("help", usages.HELP, N_("shows this overview"), explain_commands, {"de": ("hilfe",)}),
    ChatCommand("list", usages.LIST, N_("lists the feeds"), reading.list_feeds, {"de": ("liste", "feeds")}),
    ChatCommand(
        "search",
        N_("search WORDS"),
        N_("searches the names of feeds, and the items of those that you follow"),
        reading.search,
        {"de": ("suche", "suchen")},
    ),
    ChatCommand("show", usages.SHOW, N_("describes a feed"), reading.show, {"de": ("zeige", "zeigen")}),
    ChatCommand(
        "latest",
        usages.LATEST,
        N_("shows the newest items"),
        reading.latest,
        {"de": ("neueste", "neues")},
    ),
    ChatCommand(
        "subscribe",
        usages.SUBSCRIBE,
        N_("delivers new items here; filters are author, category, q, lang and others"),
        following.subscribe,
        {"de": ("abonniere", "abonnieren"), "en": ("sub",)},
        rights=CommandRights.ROOM,
    ),
    ChatCommand(
        "unsubscribe",
        usages.UNSUBSCRIBE,
        N_("ends the delivery"),
        following.unsubscribe,
        {"de": ("abbestelle", "abbestellen"), "en": ("unsub",)},
        rights=CommandRights.ROOM,
    ),
    ChatCommand(
        "subscriptions",
        usages.SUBSCRIPTIONS,
        N_("lists the feeds that you follow"),
        reading.subscriptions,
        {"de": ("abos", "abonnements"), "en": ("subs",)},
    ),
    ChatCommand(
        "post",
        N_("post FEED TEXT"),
        N_("publishes a text; correct your message to correct it"),
        posting.post,
        {"de": ("schreibe", "schreiben")},
        rights=CommandRights.AUTHOR,
    ),
    ChatCommand(
        "edit",
        N_("edit FEED TEXT"),
        N_("replaces your newest item in a feed"),
        posting.edit,
        {"de": ("ändere", "ändern")},
        rights=CommandRights.AUTHOR,
    ),
    ChatCommand(
        "delete",
        usages.DELETE,
        N_("deletes your newest item in a feed"),
        posting.delete,
        {"de": ("lösche", "löschen")},
        rights=CommandRights.AUTHOR,
    ),
    ChatCommand(
        "quiet",
        N_("quiet 22-7 [TIMEZONE]"),
        N_("delivers nothing in these hours; quiet off ends it"),
        following.quiet,
        {"de": ("ruhe",)},
        rights=CommandRights.ROOM,
    ),
    ChatCommand(
        "digest",
        N_("digest daily 8:00 [TIMEZONE]"),
        N_("delivers all items at once, daily or on a weekday; digest off ends it"),
        following.digest,
        {"de": ("übersicht",)},
        rights=CommandRights.ROOM,
    ),
    ChatCommand(
        "answers",
        usages.ANSWERS,
        N_("tells you when somebody answers an entry of yours; answers off ends it"),
        news.answers,
        {"de": ("antworten",)},
        rights=CommandRights.AUTHOR,
    ),
    ChatCommand(
        "language",
        N_("language CODE"),
        N_("sets the language: en or de"),
        following.language,
        {"de": ("sprache",)},
        rights=CommandRights.ROOM,
    ),
    ChatCommand(
        "outline",
        usages.OUTLINE,
        N_("shows the order and the levels of the items of a feed"),
        outlines.outline,
        {"de": ("gliederung",)},
        hidden=True,
    ),
    ChatCommand(
        "move",
        usages.MOVE,
        N_("moves an item of an outline: up, down, indent or outdent"),
        outlines.move,
        {"de": ("verschiebe", "verschieben")},
        rights=CommandRights.AUTHOR,
        hidden=True,
    ),
    ChatCommand(
        "requests",
        N_("requests"),
        N_("shows who asks to follow your feeds"),
        approvals.requests,
        {"de": ("anfragen",)},
        rights=CommandRights.ROOM,
    ),
    ChatCommand(
        "allow",
        usages.ALLOW,
        N_("lets a person follow a feed of yours"),
        approvals.allow,
        {"de": ("erlaube", "erlauben"), "en": ("approve",)},
        rights=CommandRights.ROOM,
        hidden=True,
    ),
    ChatCommand(
        "refuse",
        usages.REFUSE,
        N_("refuses a request to follow a feed of yours"),
        approvals.refuse,
        {"de": ("ablehnen",), "en": ("deny",)},
        rights=CommandRights.ROOM,
        hidden=True,
    ),
    ChatCommand("join", N_("/join ROOM"), N_("brings me into a group chat"), following.join, {"de": ("beitreten",)}),
    ChatCommand(
        "leave",
        N_("leave"),
        N_("makes me leave the group chat and ends its subscriptions"),
        following.leave,
        {"de": ("verlassen",)},
        rights=CommandRights.ROOM,
    ),
)


def by_word(commands: Iterable[ChatCommand]) -> Mapping[str, ChatCommand]:
    """Returns commands by their names and their other names."""
    return {
        word: row
        for row in commands
        for word in (row.name, *(alias for aliases in row.aliases.values() for alias in aliases))
    }


async def run_command(c: Conversation) -> ChatReply | None:
    """Answers a message. Returns None if its first word is no command. Raises StoreError."""
    # Before the first word: the text of an answer to an item is never a command.
    try:
        if c.message.reacts_to:
            return await posting.react(c.by_author())
        if parse_message_id(c.message.reply_to) is not None:
            return await posting.reply(c.by_author())
    except FeedError as error:
        return ChatReply(c.error(error), done=False)
    except RefusalError as error:
        return ChatReply(str(error), done=False)
    word, rest = split_command(c.message.text)
    command = c.tools.commands.get(word)
    if command is None:
        return await greet(c) if is_greeting(c.message.text) else None
    if command.rights is CommandRights.ROOM and not c.may_change:
        return ChatReply(c.say("Only owners and admins of this room may do that."))
    try:
        return await command.run(c.by_author() if command.rights is CommandRights.AUTHOR else c, rest)
    except FeedError as error:
        return await refusal(c, command, rest, error)
    except RefusalError as error:
        return ChatReply(str(error))
    except UsageError as error:
        reason = f"{error}\n" if str(error) else ""
        return ChatReply(f"{reason}{c.say('Write: {usage}', usage=c.say(command.usage))}")
