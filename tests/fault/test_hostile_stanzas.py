"""Stanzas that are made to hurt, from an ordinary client through real servers (xep-map 246; design sections 3 and 5).

Whatever a server lets through, its sender gets one clear answer, the link stays up, and nobody else notices. What a
server does not let through ends the sender's own session, which is the server's answer.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from smartfeeds.app.lifecycle import App
from support.client import Client, Session, log_in
from support.component import NS, PS, entry, ok
from support.servers import TestServer
from support.service import running, write_config
from support.waiting import wait_for

CLOSED = "closed"
RESULT = "result"
NODE = "evil"
SLOW = 50.0  # times as long as usual, and
SLOW_S = 2.0  # so many seconds: more than this is noticed
_LAST_ID = re.compile("<iq [^>]*?id='([^']*)'")
RSM = f"<set xmlns='{NS['rsm']}'>%s</set>"


def publish(payload: str, *, item: str = "<item id='x'>", node: str = NODE, attributes: str = "") -> str:
    """A publish request."""
    inner = f"<publish node='{node}'>{item}{payload}</item></publish>"
    return f"<iq id='h' type='set' to='COMPONENT' {attributes}><pubsub xmlns='{PS}'>{inner}</pubsub></iq>"


def get(inner: str) -> str:
    """A request of type get."""
    return f"<iq id='h' type='get' to='COMPONENT'><pubsub xmlns='{PS}'>{inner}</pubsub></iq>"


def put(inner: str) -> str:
    """A request of type set."""
    return f"<iq id='h' type='set' to='COMPONENT'><pubsub xmlns='{PS}'>{inner}</pubsub></iq>"


def atom(inner: str) -> str:
    """An Atom entry around XML."""
    return f"<entry xmlns='http://www.w3.org/2005/Atom'>{inner}</entry>"


def many(text: str, count: int) -> str:
    """A text with the numbers up to `count`; a backquote is a quote."""
    return " ".join(text.format(number) for number in range(count)).replace("`", "'")


ENTRY = entry("t")
EMPTY = "<iq id='h' type='set' to='COMPONENT'/>"
CUT = "not-acceptable"
LONG = {CLOSED, "payload-too-big", CUT}
BAD = {"bad-request"}
ACCEPTED = {RESULT}
UNREAD = {CUT, CLOSED}

# What is sent, and what may come of it: a result, the condition of an error (that of pubsub where there is one), or
# the end of the sender's own session.
HOSTILE: dict[str, tuple[str, set[str]]] = {
    "text of 600 KB": (publish(atom("<title>" + "x" * 600_000 + "</title>")), LONG),
    "text of 240 KB": (publish(atom("<title>" + "x" * 240_000 + "</title>")), {"payload-too-big"}),
    "10,000 names": (publish(many("<n{}/>", 10_000)), UNREAD),
    "10,000 names deep inside": (publish(atom(f"<x>{many('<m{}/>', 10_000)}</x>")), UNREAD),
    "10,000 attributes": (publish(f"<x xmlns='u' {many('a{}=``', 10_000)}/>"), UNREAD),
    "100,000 attributes": (publish(f"<x xmlns='u' {many('b{}=``', 100_000)}/>"), UNREAD),
    "10,000 attributes of the stanza": (
        publish(ENTRY, attributes=many("c{}=``", 10_000)),
        UNREAD | ACCEPTED,  # ejabberd does not hand them on
    ),
    "10,000 namespaces": (publish(f"<x xmlns='u' {many('xmlns:p{0}=`u{0}`', 10_000)}/>"), UNREAD | {"invalid-payload"}),
    "1,000 levels": (publish(atom("<a>" * 1_000 + "</a>" * 1_000)), UNREAD),
    "200 levels": (publish(atom("<a>" * 200 + "</a>" * 200)), {"invalid-payload"}),
    "3,000 levels": (publish(atom("<a>" * 3_000 + "</a>" * 3_000)), UNREAD),  # 30,000 are too many for ejabberd itself
    "stanzas in stanzas": (
        publish(atom("<iq><message/></iq>" * 1_000)),
        {"payload-too-big", "invalid-payload", RESULT},
    ),
    "namespace with a space": (publish("<x xmlns='a b'/>"), UNREAD | {"invalid-payload"}),
    "namespace with a percent sign": (publish("<x xmlns='%zz'/>"), UNREAD | {"invalid-payload"}),
    "namespace that is no URI": (publish("<x xmlns='http://['/>"), UNREAD | {"invalid-payload"}),
    "namespace with markup": (publish("<x xmlns='&lt;&amp;&#9;'/>"), UNREAD | {"invalid-payload"}),
    "namespace of the stanza with a space": (publish(ENTRY, attributes="xmlns:n='a b' n:a='1'"), ACCEPTED | UNREAD),
    "namespace of the stanza with a percent sign": (
        publish(ENTRY, attributes="xmlns:n='%zz' n:a='1'"),
        UNREAD | ACCEPTED,
    ),
    "namespace of the stanza with markup": (
        publish(ENTRY, attributes="xmlns:n='&lt;&#9;' n:a='1'"),
        UNREAD | ACCEPTED,
    ),
    "xml:id of the stanza that is none": (publish(ENTRY, attributes="xml:id='- 1'"), UNREAD | ACCEPTED),
    "xml:base of the stanza": (publish(ENTRY, attributes="xml:base='% 1'"), ACCEPTED),
    "xml:space of the stanza": (publish(ENTRY, attributes="xml:space='no'"), ACCEPTED),
    "xml:lang that is none": (publish(ENTRY, attributes="xml:lang='!'"), ACCEPTED | BAD),
    "xml:id twice": (publish(atom("<title>t</title><a xml:id='q'/><b xml:id='q'/>")), UNREAD | ACCEPTED),
    "prefix that is not declared": (publish(atom("<q:a/>")), {CLOSED}),
    "attribute prefix that is not declared": (publish(ENTRY, attributes="q:a='1'"), {CLOSED}),
    "prefix declared beside it": (publish("<q:a xmlns:q='u'/><r:a/>"), {CLOSED}),
    "prefix taken back": (publish(atom("<a xmlns:q=''/>")), {CLOSED}),
    "one attribute under two prefixes": (publish("<x xmlns:a='u' xmlns:b='u' a:x='1' b:x='2'/>"), {CLOSED}),
    "names that only new XML allows": (publish("<\u0221 xmlns='u' \U00010000=''/>"), {CLOSED}),
    "names with combining marks": (publish("<e\u0301\u00b7 xmlns='u' \u4e00='1'/>"), {"invalid-payload"}),
    "attribute of 200 KB": (publish(f"<x xmlns='u' a='{'x' * 200_000}'/>"), LONG | {"invalid-payload"}),
    "attribute of 200 KB of the stanza": (publish(ENTRY, attributes=f"a='{'x' * 200_000}'"), ACCEPTED | UNREAD),
    "attribute of 900 KB": (publish(f"<x xmlns='u' a='{'x' * 900_000}'/>"), LONG | {"invalid-payload"}),
    "attribute of 10 MB": (publish(f"<x xmlns='u' a='{'x' * 10_000_000}'/>"), {CLOSED}),
    "attribute name of 60 KB": (publish(f"<x xmlns='u' {'a' * 60_000}='1'/>"), UNREAD),
    "attribute name of 60 KB of the stanza": (publish(ENTRY, attributes=f"{'a' * 60_000}='1'"), UNREAD | ACCEPTED),
    "name of 60 KB": (publish(f"<{'a' * 60_000} xmlns='u'/>"), UNREAD),
    "greatest character": (publish(entry("\U0010ffff\ufffd\ue000")), ACCEPTED),
    "reference to the greatest character": (publish(atom("<title>&#x10FFFF;&#1114109;</title>")), ACCEPTED),
    "reference beyond Unicode": (publish(atom("<title>&#xFFFFFFFFFFFFFFFF;</title>")), {CLOSED}),
    "reference to half a character": (publish(atom("<title>&#xD800;</title>")), {CLOSED}),
    "reference to a control character": (publish(atom("<title>&#7;</title>")), {CLOSED}),
    "control character": (publish(atom("<title>\x07</title>")), {CLOSED}),
    "U+FFFE": (publish(atom("<title>\ufffe</title>")), {CLOSED}),
    "U+FFFF in an id": (publish(ENTRY, item="<item id='\uffff'>"), {CLOSED}),
    "U+0085 and U+2028": (publish(entry("\u0085\u2028"), item="<item id='\u0085\u2028'>"), ACCEPTED),
    "U+007F": (publish(entry("\x7f\x9f"), item="<item id='\x7f'>"), ACCEPTED),
    "byte order mark": (publish(entry("\ufeff")), ACCEPTED),
    "CDATA": (publish(atom("<title><![CDATA[</iq> ]]>&gt;<![CDATA[<iq>]]></title>")), ACCEPTED),
    "comment": (publish(atom("<!-- </iq> --><title>t</title>")), {CLOSED, RESULT}),
    "instruction": (publish(atom("<?iq </iq>?><title>t</title>")), {CLOSED, RESULT}),
    "document type": ("<!DOCTYPE a [<!ENTITY b 'c'>]>" + publish(ENTRY), {CLOSED}),
    "entity": (publish(atom("<title>&b;</title>")), {CLOSED}),
    "end of the stream": ("</stream:stream>" + publish(ENTRY), {CLOSED}),
    "max of -1": (get(f"<items node='{NODE}'/>" + RSM % "<max>-1</max>"), BAD),
    "max of 10^400": (get(f"<items node='{NODE}'/>" + RSM % f"<max>{'9' * 400}</max>"), BAD),
    "max_items of -1": (get(f"<items node='{NODE}' max_items='-1'/>"), BAD),
    "UID of 200 KB": (get(f"<items node='{NODE}'/>" + RSM % f"<after>cursor:{'9' * 200_000}</after>"), BAD),
    "UID of 1 MB": (get(f"<items node='{NODE}'/>" + RSM % f"<after>{'9' * 1_000_000}</after>"), UNREAD),
    "UID of odd characters": (
        get(f"<items node='{NODE}?order=modified'/>" + RSM % "<before>cursor:\u0661_0_\ufeff</before>"),
        BAD | {"item-not-found"},
    ),
    "index of 10^30": (
        get(f"<items node='{NODE}'/>" + RSM % f"<max>1</max><index>1{'0' * 30}</index>"),
        BAD | {"item-not-found"},
    ),
    "node name of 200 KB": (get(f"<items node='{'n' * 200_000}'/>"), BAD),
    "node name of 1 MB": (get(f"<items node='{'n' * 1_000_000}'/>"), UNREAD),
    "node name of odd characters": (get("<items node='\u202e?&#10;q=%00&amp;&amp;order'/>"), BAD | {"item-not-found"}),
    "item id of 200 KB": (publish(ENTRY, item=f"<item id='{'i' * 200_000}'>"), BAD),
    "item id of 500 entities": (publish(ENTRY, item=f"<item id='{'&quot;' * 500}'>"), ACCEPTED),
    "JID that is none": (
        put(f"<subscribe node='{NODE}' jid='@@\u200e/'/>"),
        {"invalid-jid"},
    ),
    "JID of 5 KB": (
        put(f"<subscribe node='{NODE}' jid='{'a' * 5_000}@b'/>"),
        {"invalid-jid"},
    ),
    "to an odd address": (
        "<iq id='h' type='get' to='\u00e9\U0001f600@COMPONENT'><vCard xmlns='vcard-temp'/></iq>",
        {"result", "service-unavailable", "bad-request", "jid-malformed"},
    ),
    "odd ping": (
        "<iq id='h' type='get' to='COMPONENT' xmlns:n='%zz' n:a='1'><ping xmlns='urn:xmpp:ping'/></iq>",
        UNREAD | ACCEPTED,
    ),
    "id of 200 KB": (
        f"<iq type='get' to='COMPONENT' id='{'h' * 200_000}'><query xmlns='{NS['info']}'/></iq>",
        ACCEPTED,
    ),
    "id of 230 KB": (
        f"<iq type='get' to='COMPONENT' id='{'i' * 230_000}'><query xmlns='{NS['info']}'/></iq>{EMPTY}",
        {"bad-request"},  # the first has no answer that the server would take; the second is answered all the same
    ),
    "odd messages": (
        "<message to='COMPONENT' type='error' xml:id='-' id='1.1'><error/></message>"
        "<message to='COMPONENT' type='error' id='999999999999999999.1'><error type='cancel'/></message>"
        f"<message to='COMPONENT' xmlns:n='%zz' n:a='1'><event xmlns='{PS}#event'/></message>{EMPTY}",
        {"bad-request"},
    ),
    "odd presence": (
        "<presence to='COMPONENT' type='subscribe' xmlns:n='%zz' n:a='1'/><presence to='COMPONENT/\u00e9' xml:id='-'/>"
        f"<presence to='COMPONENT' type='unavailable'/>{EMPTY}",
        {"bad-request"},
    ),
}


async def send(eve: Session, component: str, stanza: str) -> str:
    """Sends a stanza; what came of it (see HOSTILE)."""
    text = stanza.replace("COMPONENT", component)
    answer = await eve.ask(_LAST_ID.findall(text)[-1], text)
    if answer is None:
        return CLOSED
    if answer.get("type") == "result":
        return RESULT
    names = [child.tag.rpartition("}")[2] for child in answer[-1] if not child.tag.endswith("}text")]
    return str(names[-1])


@asynccontextmanager
async def stage(server: TestServer, folder: Path) -> AsyncIterator[tuple[App, str, Client, Session]]:
    """The component on a real server, Alice with a feed of her own, and Eve with hers."""
    component = server.take_name()
    async with running(write_config(folder, server, component, log={"level": "error"})) as app:
        alice = await log_in(server, "alice")
        eve = Session(server, "eve", "\u00e9'&<\">")
        try:
            for who, node in ((alice, "good"), (await eve.client(), NODE)):
                ok(await who.set(component, f"<pubsub xmlns='{PS}'><create node='{node}'/></pubsub>"))
                # An empty feed would become a generic node with the first payload that is no entry.
                first = f"<publish node='{node}'><item id='first'>{ENTRY}</item></publish>"
                ok(await who.set(component, f"<pubsub xmlns='{PS}'>{first}</pubsub>"))
            yield app, component, alice, eve
        finally:
            eve.leave()
            await alice.logout()


async def publish_well(alice: Client, component: str) -> float:
    """Alice publishes; how long it took in seconds."""
    began = time.monotonic()
    inner = f"<publish node='good'><item id='a'>{ENTRY}</item></publish>"
    ok(await alice.set(component, f"<pubsub xmlns='{PS}'>{inner}</pubsub>"))
    return time.monotonic() - began


async def test_hostile_stanza_is_answered_and_nobody_else_notices(server: TestServer, tmp_path: Path) -> None:
    """[xep-map 9] [xep-map 10] [xep-map 12] [xep-map 246] [SF-021]"""
    async with stage(server, tmp_path) as (app, component, alice, eve):
        usual_s = median([await publish_well(alice, component) for _ in range(20)])
        surprises: dict[str, str] = {}
        slow: dict[str, float] = {}
        for name, (stanza, expected) in HOSTILE.items():
            await eve.client()
            outcome, took_s = await asyncio.gather(send(eve, component, stanza), publish_well(alice, component))
            if outcome not in expected:
                surprises[name] = outcome
            if took_s > SLOW_S + SLOW * usual_s:
                slow[name] = took_s
            assert app.online.is_set() and app.stream.outbox.epoch == 1, f"{name} ended the link"

        assert surprises == {}
        assert slow == {}
        assert app.supervisor.connects == 1
        await wait_for(app.router.drain(), "the end of all requests")
