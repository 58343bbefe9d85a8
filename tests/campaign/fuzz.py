"""Mutated input for every parser of strangers' texts [CAM-060].

A parser may refuse its input with the errors of its contract. Any other error is a finding, and so is an input that
takes a second. The input is stored beside the history. `variant` chooses one target; without it all run.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from campaign import fuzz_files
from campaign.fuzz_target import Target
from campaign.pieces import Piece, Task, judged
from campaign.report import INPUTS
from smartfeeds.app.formats import read_document
from smartfeeds.app.site import feed_forms
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.position import canonical_cursor, is_canonical, parse_cursor, parse_position
from smartfeeds.core.times import parse_time
from smartfeeds.core.view import BARE, CREATED, canonical, from_canonical, parse_view
from smartfeeds.errors import SmartfeedsError
from smartfeeds.formats import xml
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.payload import complete_entry
from smartfeeds.http import negotiation
from smartfeeds.http.calls import credential_of
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.queries import read_query
from smartfeeds.xmpp.decode import decode
from smartfeeds.xmpp.framer import Framer
from smartfeeds.xmpp.parsing import StanzaParser, StreamSyntaxError
from unit.xmpp.wire import ACTOR, OW, PS, RSM, SERVICE, submit

ROOT = Path(__file__).parents[2]
SLOW_S = 1.0
PIECE_INPUTS = 20_000
MAX_BYTES = 20_000
_CONTAINERS = frozenset(f"{{{namespace}}}pubsub" for namespace in (PS, OW))  # as the router chooses the decoder
HEADER = b"<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' id='1'>"

FORMS = feed_forms()


def read_texts(data: bytes) -> None:
    """Cursors, positions, times, dates and addresses."""
    text = data.decode("utf-8", "replace")
    cursor = parse_cursor(text)
    if is_canonical(text):
        assert cursor is not None and canonical_cursor(text) == text
    canonical_cursor(text)
    parse_jid(text)
    parse_date(text)
    parse_time(text)
    for view in (BARE, CREATED):
        try:
            parse_position(text, view)
        except SmartfeedsError:
            continue


def read_view(data: bytes) -> None:
    """Views, and queries of HTTP."""
    text = data.decode("utf-8", "replace")
    try:
        view = parse_view(text)
    except SmartfeedsError:
        view = None
    if view is not None:
        assert from_canonical(canonical(view)) == view
    read_query(text)


def read_headers(data: bytes) -> None:
    """Headers of HTTP requests."""
    text = data.decode("latin-1")
    negotiation.choose(text, FORMS.of_feed)
    negotiation.takes_gzip(text)
    credential_of(text)


def read_stream(data: bytes) -> None:
    """Bytes of the XMPP stream, in chunks, to requests."""
    framer, frames = Framer(65_536), []
    half = len(data) // 2
    for chunk in (HEADER, data[:half], data[half:]):
        frames += framer.feed(chunk)
    for stanza in StanzaParser(framer.header).parse([frame.data for frame in frames]):
        if stanza is None or not len(stanza) or stanza[0].tag not in _CONTAINERS:
            continue
        try:
            decode(stanza.get("type", "get"), stanza[0], ACTOR, SERVICE)
        except SmartfeedsError:
            continue


def read_feed(data: bytes) -> None:
    """Documents of all formats, and their entries as payloads."""
    document = read_document(data, "http://example.org/feed")
    for item in document.items:
        complete_entry(item.payload, item.id, 0)


def read_payload(data: bytes) -> None:
    """Payloads: what is accepted has a canonical form that means the same."""
    payload = xml.canonical(xml.parse_payload(data))
    assert xml.canonical(xml.parse_payload(payload)) == payload


def _stanzas() -> tuple[bytes, ...]:
    form = submit(f"{PS}#node_config", "<field var='pubsub#title'><value>t</value></field>")
    entry = "<entry xmlns='http://www.w3.org/2005/Atom'><id>a</id><title>t</title></entry>"
    result_set = f"<set xmlns='{RSM}'><max>5</max><after>x</after></set>"
    owner = "<affiliation jid='a@b' affiliation='owner'/>"
    requests = (
        f"<pubsub xmlns='{PS}'><publish node='n'><item id='a'>{entry}</item></publish></pubsub>",
        f"<pubsub xmlns='{PS}'><items node='n?order=created'/>{result_set}</pubsub>",
        f"<pubsub xmlns='{PS}'><create node='n'/><configure>{form}</configure></pubsub>",
        f"<pubsub xmlns='{PS}'><subscribe node='n' jid='a@b'/><options>{form}</options></pubsub>",
        f"<pubsub xmlns='{OW}'><configure node='n'>{form}</configure></pubsub>",
        f"<pubsub xmlns='{OW}'><affiliations node='n'>{owner}</affiliations></pubsub>",
    )
    return tuple(
        f"<iq id='1' type='{kind}' from='a@b/c' to='{SERVICE}'>{request}</iq>".encode()
        for request in requests
        for kind in ("get", "set")
    )


def _documents() -> tuple[bytes, ...]:
    folders = (ROOT / "tests" / "corpus" / "data-own", ROOT / "tests" / "corpus" / "data")
    files = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix not in (".tsv", ".txt")]
    return tuple(path.read_bytes() for path in files if path.stat().st_size < MAX_BYTES)


_TEXTS = (
    b"1767225600_0_b191b173",
    b"c1767225600.5_12_00000000",
    b"1_0_b191b173~2_0_b191b173",
    b"cursor:1_0_0",
    b"time:0",
)
_DATES = (
    b"2026-01-01T00:00:00Z",
    b"Mon, 09 May 2011 12:00:00 GMT",
    b"id:a",
    b"alice@example.org/x",
    b"a@xn--fsq.example",
)
_QUERIES = (
    b"order=created&since=cursor:1_0_0&max=5",
    b"author=a%26b&q=tea&kind=new&lang=en",
    b"sync=true&callback=f&timeout=3",
)
_HEADERS = (
    b"text/html;q=0.5, application/json",
    b"*/*;q=0",
    b"Bearer sf_a_b",
    b"Basic YTpi",
    b"gzip;q=1, identity;q=0",
)
_MARKUP = (
    b"<",
    b">",
    b"&lt;",
    b"&x;",
    b"]]>",
    b"<![CDATA[",
    b"<!--",
    b"<?x?>",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"\x00",
    b"xmlns=''",
    b"\xff",
)
_SIGNS = (
    b"_",
    b"~",
    b":",
    b"&",
    b"=",
    b"%00",
    b"%",
    b"-",
    b".",
    b"0" * 40,
    b"9" * 30,
    "ü\u202e\U0001f600".encode(),
    b"\x00",
    b";",
)

TARGETS: dict[str, Target] = {
    "texts": Target(read_texts, (*_TEXTS, *_DATES), _SIGNS),
    "queries": Target(read_view, _QUERIES, _SIGNS),
    "headers": Target(read_headers, _HEADERS, (*_SIGNS, b",", b";q="), (SmartfeedsError, HttpError)),
    "stream": Target(read_stream, _stanzas(), (*_MARKUP, b"</iq>", b"<iq>", b"</stream:stream>"), (StreamSyntaxError,)),
    "documents": Target(read_feed, _documents(), (*_MARKUP, b"{", b"]", b'"', b"\\u0000")),
    "payloads": Target(read_payload, (*_documents(), *_stanzas()), _MARKUP),
}
TARGETS |= fuzz_files.TARGETS


class Mutator:
    """Inputs for a target: seeds that are cut, flipped, repeated, joined, and mixed with tokens."""

    def __init__(self, chance: random.Random, target: Target) -> None:
        self._chance = chance
        self._target = target

    def make(self) -> bytes:
        """The next input."""
        chance = self._chance
        data = bytearray(chance.choice(self._target.seeds))
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            start = chance.randrange(len(data) + 1)
            end = min(len(data), start + chance.choice((0, 1, 1, 4, 30, 300)))
            match chance.randrange(5):
                case 0:
                    data[start:end] = chance.choice(self._target.tokens)
                case 1:
                    del data[start:end]
                case 2:
                    data[start:end] = bytes(data[start:end]) * chance.choice((2, 3, 50))
                case 3:
                    data[start:end] = chance.randbytes(end - start)
                case _:
                    other = chance.choice(self._target.seeds)
                    data[start:end] = other[chance.randrange(len(other) + 1) :][: chance.choice((5, 50, 500))]
        return bytes(data[:MAX_BYTES])


async def fuzz(task: Task) -> AsyncIterator[Piece]:
    """Tries `count` inputs on each target."""
    names = [task.variant] if task.variant else list(TARGETS)
    for name in names:
        for seed, count, folder in task.pieces(PIECE_INPUTS):
            yield await asyncio.to_thread(fuzz_piece, name, folder / name, seed, count)


def fuzz_piece(name: str, folder: Path, seed: int, count: int) -> Piece:
    """Tries inputs on one target."""
    target, problems = TARGETS[name], []
    mutator = Mutator(random.Random(f"{seed} {name}"), target)
    with Task(seed, count, folder).history(folder) as history:
        for number in range(count):
            data = mutator.make()
            problem = try_input(target, data)
            if problem:
                (folder / f"input-{number}").write_bytes(data)
                history.fault(f"{name} input {number}: {problem}")
                problems.append(f"{name} input {number}: {problem}")
    return judged(seed, count, history, problems, Counter({f"{name}{INPUTS}": count}))


def try_input(target: Target, data: bytes) -> str:
    """Why the target is wrong with this input; empty if it is right."""
    start_s = time.process_time()
    try:
        target.read(data)
    except target.errors:
        pass
    except Exception as error:  # noqa: BLE001 - every error outside the contract is a finding
        return f"{type(error).__name__}: {error}"[:300]
    spent_s = time.process_time() - start_s
    return f"takes {spent_s:.1f} s" if spent_s > SLOW_S else ""
