"""Whatever comes as a command gives an answer that can be written, or FeedError (XEP-0050)."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.errors import FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.command_sessions import CommandSessions
from smartfeeds.xmpp.commands import COMMAND, CommandRunner, encode_about, encode_command
from smartfeeds.xmpp.stanza_errors import encode_error
from support.commands import GREET_TYPE, TABLE
from unit.xmpp.wire import ACTOR, DATA, SERVICE, parse

XML_TEXT = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufffe\uffff") | st.sampled_from("\t\n\r"),
    max_size=20,
)
NODES = st.sampled_from([*TABLE] * 4 + ["", "other"])
ACTIONS = st.sampled_from(["execute", "next", "prev", "complete", "cancel"] * 4 + ["", "dance"])
VALUES = XML_TEXT | st.sampled_from(["0", "1", "2", "-1", "warmly", "x" * 2_000, GREET_TYPE, "urn:other"])
FIELDS = st.lists(
    st.tuples(st.sampled_from(["step", "step", "name", "name", "how", "FORM_TYPE", ""]), st.lists(VALUES, max_size=2)),
    max_size=6,
)
FORMS = st.tuples(st.sampled_from(["submit"] * 4 + ["cancel", "form", "result", "", "x"]), FIELDS)
TIME_S = 1_767_225_600


async def handle(_request: r.Request) -> object:
    return r.NodeList((), None)


def new_sessions() -> CommandSessions:
    return CommandSessions(key=b"key", now_us=lambda: TIME_S * 1_000_000, new_id=lambda: "fresh", remembered=2)


def session_of(node: str) -> str:
    """The first session of a holder, as any process would make it."""
    return new_sessions().begin(ACTOR.bare_text, SERVICE, node)


@given(st.lists(st.tuples(NODES, ACTIONS | st.none(), XML_TEXT | st.none(), st.lists(FORMS, max_size=2)), max_size=6))
def test_any_commands_give_answers_or_feed_errors(asked: list[tuple[str, str | None, str | None, list[Any]]]) -> None:
    """One after the other in the same session, half of them with an id that is right [xep-map 239]."""
    sessions = new_sessions()
    commands = CommandRunner(TABLE, handle, sessions)
    begun = False
    for node, action, session, forms in asked:
        attributes = {"node": node, "action": action, "sessionid": session or (session_of(node) if begun else None)}
        element = etree.Element(COMMAND, {name: value for name, value in attributes.items() if value is not None})
        for kind, fields in forms:
            form = etree.SubElement(element, f"{{{DATA}}}x", type=kind)
            for var, values in fields:
                field = etree.SubElement(form, f"{{{DATA}}}field", var=var)
                for value in values:
                    etree.SubElement(field, f"{{{DATA}}}value").text = value
        found = parse(b"<iq>" + etree.tostring(element) + b"</iq>")[0]
        begun = True

        try:
            shown = asyncio.run(commands.run(commands.read(found, ACTOR, SERVICE)))
        except FeedError as refused:
            parse(b"<iq>" + encode_about(found) + encode_error(refused) + b"</iq>")
        else:
            answer = parse(encode_command(shown))
            assert (answer.get("node"), answer.get("sessionid")) == (node, attributes["sessionid"] or session_of(node))
        assert len(sessions) <= 2
