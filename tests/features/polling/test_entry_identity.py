"""Which entries of polled documents are one item: without ids, with one id for all, or with one link for all."""

import json
from dataclasses import dataclass
from html import escape

import pytest

from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.source_entries import EntryKey, SourceEntry
from smartfeeds.formats import atom
from smartfeeds.formats.atom import digest_id
from smartfeeds.formats.xml import parse_stored
from support.polling import NODE, PATH, running_polling
from support.world import OWNER

HOME = "https://status.example/"
PAGE = "https://status.example/incidents/7"
OTHER = "https://status.example/incidents/8"


@pytest.fixture
async def polling(world, site):
    async with running_polling(world, site) as running:
        yield running


@dataclass(frozen=True)
class E:
    """An entry. `day` is that of its date in May 2010, 0 for none."""

    title: str = ""
    text: str = ""
    link: str = ""
    day: int = 0
    guid: str | None = None
    permalink: str = ""


def rss(*entries):
    def part(name, text, attributes=""):
        return f"<{name}{attributes}>{escape(text)}</{name}>"

    def item(one):
        parts = [part("title", one.title)] if one.title else []
        parts += [part("description", one.text)] if one.text else []
        parts += [part("link", one.link)] if one.link else []
        parts += [part("pubDate", f"{one.day:02} May 2010 12:00:00 GMT")] if one.day else []
        attributes = f' isPermaLink="{one.permalink}"' if one.permalink else ""
        parts += [part("guid", one.guid, attributes)] if one.guid is not None else []
        return f"<item>{''.join(parts)}</item>"

    head = f"<title>Status</title>{part('link', HOME)}<description/>"
    return f'<rss version="2.0"><channel>{head}{"".join(map(item, entries))}</channel></rss>'.encode()


def atom_feed(*entries):
    def entry(one):
        published = f"<published>2010-05-{one.day:02}T12:00:00Z</published>" if one.day else ""
        link = f'<link href="{one.link}"/>' if one.link else ""
        own_id = "" if one.guid is None else f"<id>{one.guid}</id>"
        return f"<entry>{own_id}<title>{one.title}</title><content>{one.text}</content>{link}{published}</entry>"

    entries = "".join(map(entry, entries))
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title><link href="{HOME}"/>{entries}</feed>'.encode()


def json_feed(*entries):
    def item(one):
        item = {"title": one.title, "content_text": one.text, "url": one.link}
        item |= {"date_published": f"2010-05-{one.day:02}T12:00:00Z"} if one.day else {}
        return item | ({} if one.guid is None else {"id": one.guid})

    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "x", "home_page_url": HOME}
    return json.dumps(feed | {"items": list(map(item, entries))}).encode()


async def items(polling):
    """Title or text, item id and atom:id of each item, oldest first."""
    page = await polling.world.pull(NODE, actor=OWNER, max=500)
    rows = [(parse_stored(item.payload), item) for item in reversed(page.items)]
    texts = [next(filter(None, map(entry.findtext, (atom.TITLE, atom.SUMMARY, atom.CONTENT))), "") for entry, _ in rows]
    return [(text, item.id, entry.findtext(atom.ID)) for text, (entry, item) in zip(texts, rows, strict=True)]


async def poll_all(polling, documents):
    """The items after each document was polled."""
    results = []
    for number, document in enumerate(documents):
        polling.site.pages[PATH] = document
        if number == 0:
            row = await polling.poll(await polling.add())
        else:
            row = await polling.poll(row, 7_200)
        assert row.reason == ""
        results.append(await items(polling))
    return results


def outage(number, link=HOME, day=0, **fields):
    return E(f"Outage {number}", f"The text of {number}", link, day, **fields)


# Documents, newest entry on top, and how many items there are after each of them.
CASES = {
    "no guid, one link, three titles": ([[outage(3), outage(2), outage(1)]], [3]),
    "the same on a page that is not the home": ([[outage(3, PAGE), outage(2, PAGE), outage(1, PAGE)]], [3]),
    "titles alone": ([[E("c", link=PAGE), E("b", link=PAGE), E("a", link=PAGE)]], [3]),
    "texts alone": ([[E("", "c", PAGE), E("", "b", PAGE), E("", "a", PAGE)]], [3]),
    "one title, two texts in one document": ([[E("Outage", "two", PAGE), E("Outage", "one", PAGE)]], [2]),
    "one title and text on two days": ([[E("Outage", "x", PAGE, 2), E("Outage", "x", PAGE, 1)]], [2]),
    "the same entry twice": ([[E("Outage", "x", PAGE, 1), E("Outage", "x", PAGE, 1)]], [1]),
    "one title, another text later: an edit": ([[E("Outage", "one", PAGE)], [E("Outage", "two", PAGE)]], [1, 1]),
    "another title later: an edit": ([[E("Outage", "one", PAGE)], [E("Outage (solved)", "one", PAGE)]], [1, 1]),
    "another title without a text later: an edit": ([[E("Outage", "", PAGE)], [E("Solved", "", PAGE)]], [1, 1]),
    "title and text are edited, the date is the same": (
        [[E("Outage", "one", PAGE, 1)], [E("Solved", "two", PAGE, 1)]],
        [1, 1],
    ),
    "the next entry takes the place of the last one": ([[outage(1, PAGE, 1)], [outage(2, PAGE, 2)]], [1, 2]),
    "the same without dates": ([[outage(1, PAGE)], [outage(2, PAGE)]], [1, 2]),
    "now playing": ([[E(song, "Radio X", HOME)] for song in ("Song A", "Song B", "Song C")], [1, 2, 3]),
    "now playing, titles alone": ([[E("Song A", "", HOME)], [E("Song B", "", HOME)]], [1, 2]),
    "now playing with dates": ([[E("Song A", "", PAGE, 1)], [E("Song B", "", PAGE, 2)]], [1, 2]),
    "now playing with new guids": (
        [[E("Song A", "", PAGE, guid="1")], [E("Song B", "", PAGE, guid="2")], [E("Song A", "", PAGE, guid="3")]],
        [1, 2, 3],
    ),
    "an entry of several is edited": ([[outage(2), outage(1)], [outage(2), E("Outage 1", "Solved", HOME)]], [2, 2]),
    "the window moves": ([[outage(2), outage(1)], [outage(3), outage(2)], [outage(4)]], [2, 3, 4]),
    "one title for all, the window moves": (
        [[E("Weather", f"{day}", HOME, day), E("Weather", f"{day - 1}", HOME, day - 1)] for day in (2, 3, 4)],
        [2, 3, 4],
    ),
    "the feed dates all entries anew": (
        [[outage(2, day=day), outage(1, day=day), E("Outage 1", "other", HOME, day)] for day in (1, 2, 3)],
        [3, 3, 3],
    ),
    "entries change places": ([[outage(2), outage(1)], [outage(1), outage(2)]], [2, 2]),
    "an empty guid is none": ([[outage(n, guid=guid) for n, guid in enumerate(("", " ", "\n"))]], [3]),
    "one guid for all": ([[outage(n, guid="status") for n in (3, 2, 1)]], [3]),
    "one guid for all, titles alone": ([[E(title, "", HOME, guid="x") for title in "cba"]], [3]),
    "one guid for two": ([[outage(2, guid="x"), outage(1, guid="x")]], [2]),
    "one guid without links, the window moves": (
        [[outage(n, "", guid="x") for n in numbers] for numbers in ((3, 2, 1), (4, 3, 2), (5,))],
        [3, 4, 5],
    ),
    "one permalink for all": ([[outage(n, "", guid=HOME, permalink="true") for n in (3, 2, 1)]], [3]),
    "two versions of one guid": (
        [[E("Outage", "new", PAGE, 2, "x"), E("Outage", "old", PAGE, 1, "x")]],
        [1],
    ),
    "a guid decides before title and text": ([[outage(1, PAGE, guid="x")], [outage(2, PAGE, guid="x")]], [1, 1]),
    "guids decide before the link": ([[outage(1, guid="a"), outage(1, guid="b")]], [2]),
    "no link": ([[outage(2, ""), outage(1, "")], [outage(3, ""), outage(2, "")]], [2, 3]),
    "links decide": ([[E("x", "y", PAGE), E("x", "y", OTHER)]], [2]),
    "guids appear": ([[outage(1, PAGE)], [outage(1, PAGE, guid="urn:x:1")]], [1, 1]),
    "guids go": ([[outage(1, PAGE, guid="urn:x:1")], [outage(1, PAGE)]], [1, 1]),
    "https in ids, and most entries are new": (
        [[outage(n, f"{scheme}://a.example/{n}", guid=f"{scheme}://a.example/{n}") for n in numbers]
         for scheme, numbers in (("http", (4, 3, 2, 1)), ("https", (7, 6, 5, 4)))],
        [4, 7],
    ),
    "www in permalinks, and most entries are new": (
        [[outage(n, f"https://a.example/{n}", guid=f"https://{host}/{n}", permalink="true") for n in numbers]
         for host, numbers in (("a.example", (4, 3, 2, 1)), ("www.a.example", (7, 6, 5, 4)))],
        [4, 7],
    ),
    "one guid for all, one entry at a time": (
        [[outage(n, f"https://a.example/{n}", guid="latest")] for n in (1, 2, 3)],
        [1, 2, 3],
    ),
    "an edited entry moves to another page": (
        [[E("Outage", "one", PAGE, 1, "x")], [E("Solved", "two", OTHER, 1, "x")], [E("Solved", "three", PAGE, 1, "x")]],
        [1, 1, 1],
    ),
    "https": ([[outage(1, PAGE)], [outage(1, PAGE.replace("https", "http"))]], [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("write", [rss, atom_feed, pytest.param(json_feed, marks=pytest.mark.needs("documents"))])
@pytest.mark.parametrize("name", CASES)
async def test_entries_are_one_item_if_nothing_says_that_they_differ(polling, write, name):
    """[SRC-069] [SRC-070] No item is overwritten by another entry, and the same document again changes nothing."""
    documents, counts = CASES[name]
    polls = await poll_all(polling, [write(*document) for document in documents for _again in (1, 2)])
    assert [len(poll) for poll in polls[1::2]] == counts
    assert polls[::2] == polls[1::2]
    for poll, document in zip(polls[::2], documents, strict=True):
        assert {one.title or one.text for one in document} <= {body for body, _id, _atom_id in poll}, "each can be read"
    last = polls[-1]
    assert len({atom_id for _body, _id, atom_id in last}) == len(last), "readers tell them apart"


@pytest.mark.needs("documents")
async def test_numbers_are_ids_in_each_spelling(polling):
    """[SRC-069] JSON has one kind of numbers."""
    documents = [json_feed(*(outage(n, guid=kind(n)) for n in (2, 1))) for kind in (int, float, str)]
    assert [len(poll) for poll in await poll_all(polling, documents)] == [2, 2, 2]


async def test_memory_of_an_earlier_version_makes_no_doubles(polling, world):
    """[SRC-069] It had one entry for each link, with the link as identity and item id."""
    url = polling.site.url(PATH)
    pages = [outage(n, f"https://a.example/{n}") for n in (2, 1)]
    polling.site.pages[PATH] = rss(*pages, outage(9))
    row = await polling.poll(await polling.add())
    (before,) = await world.store.read(
        lambda tx: source_rows.entries_of(tx, row.source_no, [EntryKey(digest_id(url, HOME))])
    )
    old = SourceEntry(
        EntryKey(before.key.identity, "status.example"), before.item_id, before.digest, entry_no=before.entry_no
    )
    await world.store.write(lambda tx: source_rows.put_entry(tx, row.source_no, old))
    first = await items(polling)

    await polling.poll(row, 7_200)
    assert await items(polling) == first
    polling.site.pages[PATH] = rss(*pages, outage(10), outage(9))
    await polling.poll(row, 7_200)
    second = await items(polling)
    assert len(second) == 4 and set(first) < set(second)


async def test_retracted_entry_of_a_shared_link_stays_away(polling, world):
    """[SRC-074]"""
    polling.site.pages[PATH] = rss(outage(2), outage(1))
    row = await polling.poll(await polling.add())
    item_id = next(item_id for body, item_id, _ in await items(polling) if body == "Outage 1")
    await world.retract(item_id, node=NODE, actor="feeds.example.org")
    polling.site.pages[PATH] = rss(outage(3), outage(2), outage(1))
    await polling.poll(row, 7_200)
    assert sorted(body for body, _id, _atom_id in await items(polling)) == ["Outage 2", "Outage 3"]


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ([outage(2), outage(1)], [outage(3), outage(2)], 3),
        ([outage(1, PAGE)], [outage(2, PAGE)], 2),
        ([outage(1, PAGE)], [E("Outage 1 (solved)", "The text of 1", PAGE)], 1),
    ],
)
async def test_source_that_is_added_again_finds_its_items(polling, world, before, after, count):
    """[SRC-037] The memory is gone, the items are not: their ids are made of their words."""
    polling.site.pages[PATH] = rss(*before)
    row = await polling.poll(await polling.add())
    first = await items(polling)
    await world.store.write(lambda tx: source_rows.remove(tx, row.source_no))
    polling.site.pages[PATH] = rss(*after)
    row = await polling.poll(await polling.add(), 7_200)
    second = await items(polling)
    assert len(second) == count and ({item[1] for item in first} <= {item[1] for item in second})
    assert count == 1 or set(first) < set(second)
    await polling.poll(row, 7_200)
    assert await items(polling) == second
