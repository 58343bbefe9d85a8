"""What one sender with 64 costly requests in flight does to two users who ask for little, and to memory.

Each flood is measured beside the same two users alone, right before it: the machine may be busy with other work.
"""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import fill, stanzas, targets
from bench.rows import FLOODS, QUIET_USERS
from bench.runs import FILL_S, Collector, fresh
from bench.senders import Sender, SharedLink
from bench.targets import FEEDS, Target
from bench.wire import rss_mb
from bench.work import IN_FLIGHT, Number, Numbers, Scale, percentile

ROUNDS = 2
EVE = "u9"
QUIET, EVIL, SMALL = "fair-quiet", "fair-evil", "fair-small"
PAGE = 10  # items of the quiet pull
IDS = 500
_OWNER = "http://jabber.org/protocol/pubsub#owner"
_ATOM = "http://www.w3.org/2005/Atom"
_WORD = "lorem"  # in every item of `fill`

Make = Callable[[int], str]  # (number of the request) -> the child of the IQ


def measure(collect: Collector, folder: Path) -> None:
    """Every flood twice, and the memory of the process before, between and after."""
    scale = collect.scale
    database = fresh(folder) / "feeds.db"
    command = [sys.executable, "-m", "bench.fill", targets.sqlite_url(database), str(scale.fair_items), "0"]
    subprocess.run(command, check=True, timeout=FILL_S, env=targets.environment())
    target, _ = targets.ours(folder, targets.sqlite_url(database))
    try:
        collect.take("ours", _prepare(target))
        for number in range(ROUNDS):
            for name in FLOODS:
                collect.take("ours", flood(target, name, scale))
            target.wire.settle(1.0)
            collect.take("ours", [Number(f"fair_rss_{number + 1}", rss_mb(target.pid))])
    finally:
        target.stop()


def flood(target: Target, name: str, scale: Scale) -> Numbers:
    """The two quiet users alone, then beside one flood."""
    seconds = scale.fair_s
    kind, make = makers(scale.fair_items)[name]
    alone = _quiet()
    SharedLink(target.wire, list(alone.values())).run(seconds)
    beside = _quiet()
    eve = Sender(_requests(kind, make), scale.fair_in_flight)
    SharedLink(target.wire, list(beside.values()), eve).run(seconds)
    note = f"{len(eve.latencies_s) / seconds:.1f} requests/s of the flood, {eve.errors} refused"
    for user in QUIET_USERS:
        for suffix, sender in (("_alone", alone[user]), ("", beside[user])):
            p99_ms = percentile(sender.latencies_s, 0.99) * 1000
            count = f"{len(sender.latencies_s)} answers"
            yield Number(f"fair_{name}_{user}{suffix}", p99_ms, count if suffix else f"{count}; {note}")


def _prepare(target: Target) -> Numbers:
    """The feeds that the users work on."""
    for name in (QUIET, EVIL, SMALL):
        target.wire.ask(stanzas.create(FEEDS, name, EVE, {}))
    first = itertools.islice(stanzas.publishes(FEEDS, QUIET), PAGE)
    target.wire.rate(first, in_flight=1, seconds=60)
    small = (stanzas.iq("set", FEEDS, _publish(SMALL, f"s{n}", "<title>t</title>"), EVE) for n in range(IDS))
    target.wire.rate(small, in_flight=IN_FLIGHT, seconds=60)
    SharedLink(target.wire, list(_quiet().values())).run(1.0)
    yield Number("fair_rss_0", rss_mb(target.pid))


_published = itertools.count(1_000_000)


def _quiet() -> dict[str, Sender]:
    """A user who reads a page, and a user who publishes items of 1 KB; each waits for its answer."""
    page = f"<pubsub xmlns='{stanzas.PUBSUB}'><items node='{QUIET}'/>{_set(f'<max>{PAGE}</max>')}</pubsub>"
    pulls = (stanzas.iq("get", FEEDS, page, "u1") for _ in itertools.count())
    publishes = (stanzas.iq("set", FEEDS, _item(QUIET, f"q{n}", stanzas.ENTRY % (n, n)), "u2") for n in _published)
    return dict(zip(QUIET_USERS, (Sender(pulls), Sender(publishes)), strict=True))


def _requests(kind: str, make: Make) -> Iterator[bytes]:
    return (stanzas.iq(kind, FEEDS, make(number), EVE) for number in itertools.count())


def makers(items: int) -> Mapping[str, tuple[str, Make]]:
    """The requests of each flood: the type of the IQ and its child, by the names of `rows.FLOODS`."""
    large = fill.node_name(items)
    words = itertools.count()
    attributes = "".join(f" a{n}='{n}'" for n in range(5_000))
    fields = "".join(f"<field var='pubsub#f{n}'><value>{n}</value></field>" for n in range(3_000))
    jids = "".join(f"<affiliation jid='m{n}@{stanzas.DOMAIN}' affiliation='%s'/>" for n in range(2_000))
    prefixes = "".join(f" xmlns:n{n}='urn:n{n}'" for n in range(500))
    children = "".join(f"<n{n}:e n{n % 499}:a='1'/>" for n in range(500))
    bomb = f"<r xmlns='urn:r'{prefixes}>{children}</r>"
    ids = "".join(f"<item id='s{n}'/>" for n in range(IDS))

    # New words in every request. Writing 7,500 words takes 3.6 ms, and the quiet users, who have the same thread, would
    # wait for it. A replacement takes 0.1 ms.
    all_words = _content(" ".join(f"#{n:04x}" for n in range(7_500)))

    def words_of(_number: int) -> str:
        return all_words.replace("#", f"{next(words) % 4_096:03x}")

    def evil(payload: str) -> tuple[str, Make]:
        return "set", lambda number: _item(EVIL, f"e{number % 1_000}", payload)

    def pages(query: str, more: str = "<max>50</max>") -> tuple[str, Make]:
        node = f"{large}{query}"
        return "get", lambda _: f"<pubsub xmlns='{stanzas.PUBSUB}'><items node='{node}'/>{_set(more)}</pubsub>"

    return {
        "cdata": evil(f"<entry xmlns='{_ATOM}'><content><![CDATA[{'x<' * 200_000}]]></content></entry>"),
        "stanza_2mb": evil(_content("x" * 2_000_000)),
        "stanza_900kb": evil(_content("x" * 900_000)),
        "attributes": evil(f"<e xmlns='urn:e'{attributes}/>"),
        "form": (
            "set",
            lambda _: (
                f"<pubsub xmlns='{_OWNER}'><configure node='{EVIL}'><x xmlns='jabber:x:data' type='submit'>"
                f"<field var='FORM_TYPE'><value>{stanzas.OWNER_FORM}</value></field>{fields}</x></configure></pubsub>"
            ),
        ),
        "nested_names": evil("<iq></iq>" * 20_000),
        "affiliations": (
            "set",
            lambda number: (
                f"<pubsub xmlns='{_OWNER}'><affiliations node='{EVIL}'>"
                + jids.replace("%s", ("member", "publisher")[number % 2])
                + "</affiliations></pubsub>"
            ),
        ),
        "ids": ("get", lambda _: f"<pubsub xmlns='{stanzas.PUBSUB}'><items node='{SMALL}'>{ids}</items></pubsub>"),
        "q_common": pages(f"?q={_WORD}"),
        "kind_q": pages(f"?kind=edited&amp;q={_WORD}"),
        "q_three": pages("?q=lorem+ipsum+dolor"),
        "payload_58kb": evil(_content("x" * 58_000)),
        "words_60kb": ("set", lambda number: _item(EVIL, f"e{number % 1_000}", words_of(number))),
        "html": evil(_content("&lt;p&gt;&lt;b&gt;x&lt;/b&gt;&lt;/p&gt;" * 1_400, "html")),
        "deep": evil(f"<e xmlns='urn:e'>{'<a>' * 5_000}{'</a>' * 5_000}</e>"),
        "namespaces": evil(bomb),
        "pages_500": pages("", "<max>500</max>"),
        "index_far": ("get", lambda number: pages("", _far(items, number))[1](number)),
    }


def _far(items: int, number: int) -> str:
    return f"<max>10</max><index>{items - 100 - number % 1_000}</index>"


def _set(inner: str) -> str:
    return f"<set xmlns='{stanzas.RSM}'>{inner}</set>"


def _content(text: str, kind: str = "text") -> str:
    return f"<entry xmlns='{_ATOM}'><title>t</title><content type='{kind}'>{text}</content></entry>"


def _publish(node: str, item_id: str, inner: str) -> str:
    return _item(node, item_id, f"<entry xmlns='{_ATOM}'>{inner}</entry>")


def _item(node: str, item_id: str, payload: str) -> str:
    item = f"<item id='{item_id}'>{payload}</item>"
    return f"<pubsub xmlns='{stanzas.PUBSUB}'><publish node='{node}'>{item}</publish></pubsub>"
