"""What the service sends over XMPP: discovery, commands, forms, pages, cursors, notifications and chat."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from lxml import etree

from support.chat import write
from support.component import ALICE, BOB, CAROL, EVE, INFO, ITEMS, Element, bare, ok
from support.dialog import CMD, Dialog
from support.pulls import pull, request, result_set
from surfaces.program import Surface
from surfaces.world import KEYS, World

_GUEST: Final = "guest@elsewhere.example/x"
# lxml writes a prefix for the namespace of the stream, which stanzas have by default.
_PREFIX: Final = re.compile(r"(</?)ns\d+:|(xmlns):ns\d+(?==\"jabber:component:accept\")")
_RANDOM: Final = (
    (re.compile(r'(<iq [^>]*)\bid="q\d+"'), r'\1id="ID"'),
    (re.compile(r'sessionid="[^"]*"'), 'sessionid="SESSION"'),
    (re.compile(r"fresh-\d+"), "FRESH"),
)


def stanza(element: Element) -> str:
    """A stanza with one tag in each line, without the ids of this run."""
    text = _PREFIX.sub(r"\1\2", etree.tostring(element, encoding="unicode", with_tail=False))
    for pattern, replacement in _RANDOM:
        text = pattern.sub(replacement, text)
    return text.replace("><", ">\n<") + "\n"


def _answered(asking: Callable[[World], Awaitable[Element]]) -> Surface:
    """The response to a request."""

    async def surface(world: World) -> str:
        return stanza(await asking(world))

    return surface


def _disco(kind: str, node: str = "", user: str = BOB) -> Surface:
    attribute = f" node='{node}'" if node else ""
    return _answered(lambda world: world.component.ask(user, "get", f"<query xmlns='{kind}'{attribute}/>"))


async def _commands_of(world: World, user: str) -> list[tuple[str, str]]:
    """Node and name of the commands that a user sees."""
    answer = ok(await world.component.ask(user, "get", f"<query xmlns='{ITEMS}' node='{CMD}'/>"))
    return [(str(item.get("node")), str(item.get("name"))) for item in answer[0]]


async def _adhoc_list(world: World) -> str:
    """The commands in the order of the list, and which users see each of them."""
    users = {"admin": ALICE, "user": BOB, "other server": EVE}
    seen = {who: await _commands_of(world, user) for who, user in users.items()}
    rows = [
        f"{node} | {name} | {', '.join(who for who, commands in seen.items() if (node, name) in commands)}"
        for node, name in seen["admin"]
    ]
    return "\n".join(rows) + "\n"


async def _adhoc_forms(world: World) -> str:
    """The first response of each command."""
    parts = []
    for node, _ in sorted(await _commands_of(world, ALICE)):
        text = stanza(await Dialog(world.component, ALICE, node).begin())
        if node.endswith("#statistics"):
            text = re.sub(r"<value>[\d.]+</value>", "<value>NUMBER</value>", text)  # counts of this run
        parts.append(text)
    return "\n".join(parts)


async def _cursors(world: World) -> str:
    """The cursor of each item of the feed `cursors`, in both orders."""
    rows = []
    for node in ("cursors", "cursors?order=modified", "cursors?order=created"):
        for index in range(len(KEYS)):
            page = await pull(world.component, node, index=index, max=1)
            rows.append(f"{node} {page.ids[0]} {page.first}")
    return "\n".join(rows) + "\n"


async def _bot_help(world: World) -> str:
    """What the bot answers to "help", in English and German."""
    texts = [await write(world.component, bare(_GUEST), "help", xml_lang=language) for language in ("en", "de")]
    return "\n\n".join("\n".join(answers) for answers in texts) + "\n"


async def _published(world: World) -> str:
    return stanza(world.published)


async def _event(world: World) -> str:
    return stanza(world.event)


async def _archive(world: World) -> str:
    """The results of a query of the archive, and the response behind them."""
    query = f"<query xmlns='urn:xmpp:mam:2' queryid='f1' node='town'>{result_set(max=2)}</query>"
    answer = ok(await world.component.ask(CAROL, "set", query))
    return "\n".join(map(stanza, (*await world.component.events(CAROL), answer)))


def _asked(payload: str) -> Surface:
    return _answered(lambda world: world.component.ask(BOB, "get", payload))


STANZAS: Final[Mapping[str, Surface]] = {
    "disco-info-service.xml": _disco(INFO),
    "disco-items-service.xml": _disco(ITEMS),
    "disco-info-node.xml": _disco(INFO, "town"),
    "disco-info-node-generic.xml": _disco(INFO, "things"),
    "disco-items-node.xml": _disco(ITEMS, "town"),
    "disco-info-commands.xml": _disco(INFO, CMD),
    "adhoc-list.txt": _adhoc_list,
    "adhoc-forms.xml": _adhoc_forms,
    "cursors.txt": _cursors,
    "bot-help.txt": _bot_help,
    "xmpp-publish.xml": _published,
    "xmpp-event.xml": _event,
    "xmpp-page.xml": _answered(lambda world: request(world.component, "town", max=2)),
    "xmpp-page-smart.xml": _answered(
        lambda world: request(world.component, "town?order=modified", max=2, after="time:0")
    ),
    "xmpp-page-sync.xml": _answered(lambda world: request(world.component, "plans?sync=true", max=5)),
    "xmpp-page-generic.xml": _answered(lambda world: request(world.component, "things")),
    "xmpp-configure.xml": _answered(lambda world: world.component.owner_get(ALICE, "<configure node='town'/>")),
    "xmpp-configure-generic.xml": _answered(
        lambda world: world.component.owner_get(ALICE, "<configure node='things'/>")
    ),
    "xmpp-default.xml": _answered(lambda world: world.component.owner_get(ALICE, "<default/>")),
    "xmpp-options.xml": _answered(lambda world: world.component.get(BOB, f"<options node='town' jid='{bare(BOB)}'/>")),
    "xmpp-options-default.xml": _answered(lambda world: world.component.get(BOB, "<default node='town'/>")),
    "xmpp-subscriptions.xml": _answered(lambda world: world.component.get(BOB, "<subscriptions/>")),
    "xmpp-affiliations.xml": _answered(lambda world: world.component.get(CAROL, "<affiliations/>")),
    "xmpp-members.xml": _answered(lambda world: world.component.owner_get(ALICE, "<affiliations node='town'/>")),
    "xmpp-archive.xml": _archive,
    "xmpp-archive-form.xml": _asked("<query xmlns='urn:xmpp:mam:2' node='town'/>"),
    "xmpp-version.xml": _asked("<query xmlns='jabber:iq:version'/>"),
    "xmpp-vcard.xml": _asked("<vCard xmlns='vcard-temp'/>"),
    "xmpp-time.xml": _asked("<time xmlns='urn:xmpp:time'/>"),
    "xmpp-no-node.xml": _answered(lambda world: request(world.component, "nowhere")),
    "xmpp-not-allowed.xml": _answered(lambda world: request(world.component, "board")),
}
