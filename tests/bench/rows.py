"""The rows of the benchmark and their goals."""

from dataclasses import dataclass

from bench import fill
from bench.work import Scale


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its name in words, its unit, its goal in that unit, and whether less is better.

    `of` and `part`: the goal is this part of what that target reaches, `beside` in which row of its own.
    """

    name: str
    title: str
    unit: str = "/s"
    goal: float | None = None
    less: bool = False
    peers: bool = True
    of: str = ""
    part: float = 1 / 3
    beside: str = ""

    @property
    def theirs(self) -> str:
        """The row of the others that this one is compared with."""
        return self.beside or self.name


def rows(scale: Scale) -> list[Row]:
    """All rows of a run at this scale, in the order they are shown."""
    found = [
        *_with_cpu("publish_64", "publish, 64 in flight", 12_000),
        *_with_cpu("publish_1", "publish, one at a time", 1_500),
        *_with_cpu("notify", f"notifications, {scale.subscribers:,} subscribers", 250_000),
    ]
    sizes = fill.sizes(scale.items)
    for size in sizes:
        for place in ("start", "middle", "end"):
            row = f"page_{size}_{place}"
            shared = place == "start" and size in sizes[:2]
            title = f"page of 50, {place} of {size:,} items"
            found += _with_cpu(row, title, 4_000, peers=shared)
            found.append(Row(f"{row}_p99", f"{title}: p99", " ms", 5, less=True, peers=shared))
    return [
        *found,
        *_with_cpu("create", "create nodes", 5_000),
        *_with_cpu("list", "list nodes, page of 50", 4_000),
        Row("list_p99", "list nodes, page of 50: p99", " ms", 5, less=True),
        *_with_cpu("subscribe", "subscribe, all to one node", 10_000),
        Row("start_empty", "start-up, nothing stored", " s", less=True),
        Row("start_full", f"start-up, {scale.items:,} items", " s", less=True, peers=False),
        Row("rss_empty", "memory, nothing stored", " MB", less=True),
        Row("rss_full", f"memory, {scale.items:,} items and {scale.standing:,} subscriptions", " MB", 100, True, False),
        Row("rss_worked", "memory, the same after pages, publishes and the next row", " MB", 100, True, False),
        Row("crowd", f"one item to {scale.standing:,} subscribers", peers=False),
        *(
            row
            for server in ("Prosody", "ejabberd")
            for row in (
                Row(f"through_{server.lower()}", f"notifications through {server} as router", peers=False),
                Row(f"through_{server.lower()}_cpu", f"our CPU there, of {server}'s", " %", 10, True, False),
            )
        ),
    ]


def _with_cpu(name: str, title: str, goal: float, *, peers: bool = True) -> tuple[Row, Row]:
    """The row of a rate, and the row of the CPU time of one answer."""
    return Row(name, title, goal=goal, peers=peers), Row(f"{name}_cpu", f"{title}: CPU", " us", less=True, peers=peers)


def web_rows(scale: Scale) -> list[Row]:
    """The rows over HTTP. The goal of pages is a third of what a handler of aiohttp reaches with prepared bytes."""
    found = []
    for form, title in (("json", "JSON"), ("atom", "Atom")):
        same = f"web_{form}_same"
        found += [
            Row(same, f"page of 50 as {title}, the same again and again", of="aiohttp"),
            Row(f"web_{form}_other", f"page of 50 as {title}, ever other ones", of="aiohttp", beside=same),
            Row(f"web_{form}_304", f"page of 50 as {title}, not modified"),
        ]
    found.append(Row("web_ping", "longest wait of XMPP meanwhile", " ms", 50, less=True))
    few, many = f"{min(1_000, scale.web_polls):,}", f"{scale.web_polls:,}"
    for suffix, count, goal in (("", few, None), ("_many", many, 100)):
        found += [
            Row(f"web_woken{suffix}", f"publish to the last of {count} held polls", " ms", goal, less=True),
            Row(f"web_woken_ping{suffix}", "longest wait of XMPP meanwhile", " ms", 50, less=True),
            Row(f"web_poll_memory{suffix}", f"memory of a held poll, {count} of one feed", " kB", less=True),
        ]
    return [
        *found,
        Row("web_woken_apart", f"publish to a poll beside {many} on other feeds", " ms", less=True),
        Row("web_poll_memory_apart", f"memory of a held poll, {many} feeds", " kB", less=True),
        Row("web_stream", f"items on {scale.web_streams:,} event streams"),
        Row("web_stream_memory", "memory of an event stream", " kB", less=True),
    ]


def hub_rows(scale: Scale) -> list[Row]:
    """The rows of the WebSub hub."""
    return [
        Row("hub", f"WebSub: one publish to {scale.callbacks:,} callbacks", " s", 2, less=True),
        Row("hub_publish", "publish, one at a time, during these deliveries", " ms", less=True),
        Row("hub_publish_alone", "publish, one at a time, without deliveries", " ms", less=True),
    ]


def merge_sizes(scale: Scale) -> tuple[int, ...]:
    """How many items each of two feeds has that are merged."""
    return scale.merged // 10, scale.merged // 2, scale.merged


def merge_rows(scale: Scale) -> list[Row]:
    """The rows of `smartfeeds merge`. That memory does not grow with the items but for the index is for the reader."""
    found = []
    for size in merge_sizes(scale):
        title = f"merge {size:,} items into {size:,}"
        goal = 10 if size == scale.merged else None
        found += [
            Row(f"merge_{size}", title, " s", goal, less=True),
            Row(f"merge_{size}_cpu", f"{title}: CPU", " s", less=True),
            Row(f"merge_{size}_memory", f"{title}: memory", " MB", less=True),
        ]
    return found


def source_rows() -> list[Row]:
    """The rows of polling other feeds."""
    return [
        Row("sources_read", "poll of a feed of 20 entries, all of them new: CPU", " ms", less=True),
        Row("sources_poll", "poll, 95 % not modified: CPU", " ms", less=True),
        Row("sources_share", "10,000 feeds an hour, 95 % not modified: share of a core", " %", 10, less=True),
    ]


# The floods of `bench.fairness`, in the order of the table.
FLOODS = {
    "cdata": "publish of 400 KB of CDATA",
    "stanza_2mb": "publish of 2 MB",
    "stanza_900kb": "publish of 900 KB",
    "attributes": "payload with 5,000 attributes",
    "form": "form of 3,000 fields",
    "nested_names": "20,000 elements named iq in an IQ",
    "affiliations": "2,000 affiliations in one request",
    "ids": "pull of 500 ids",
    "q_common": "q of a common word, counted",
    "kind_q": "kind with q",
    "q_three": "three words in q",
    "payload_58kb": "publish of 58 KB",
    "words_60kb": "publish of 60 KB of words",
    "html": "publish of 58 KB of HTML",
    "deep": "payload of 5,000 levels",
    "namespaces": "payload with 500 namespaces",
    "pages_500": "pages of 500",
    "index_far": "index far in",
}
QUIET_USERS = {"pull": "pull p99", "publish": "publish p99"}
MEMORY = ("before", "after round one", "after round two")
# The parts of the system in `bench.parts`, and their keys in the names of rows.
PART_NAMES = {"service": "service", "PostgreSQL": "postgres", "ejabberd": "ejabberd", "load generator": "load"}
# The pages that `bench.bench_readers` requests: the form, and whether they are the same or other ones.
READER_FORMS = {
    "JSON_same": ("application/json", "same"),
    "Atom_same": ("application/atom+xml", "same"),
    "Atom_other": ("application/atom+xml", "other"),
}
