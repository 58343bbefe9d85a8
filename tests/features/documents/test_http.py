"""A feed as RSS, JSON Feed, ESS and OPML over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from smartfeeds.app.formats import read_document
from smartfeeds.core.jid import Jid
from smartfeeds.core.times import format_datetime
from smartfeeds.core.token import TokenScope
from smartfeeds.features.documents.ess import dumb_checksum, read_ess
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.opml import read_outline
from smartfeeds.formats.rss_channel import Channel
from smartfeeds.service.importing import import_document
from support.bearer import bearer
from support.component import ALICE, BOB
from support.validity import rss092_faults
from support.web import Web, WebStarter

pytestmark = pytest.mark.shared

ATOM_NS = "http://www.w3.org/2005/Atom"
GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "ess" / "golden.json").read_text("utf-8"))
FILES = {file["name"]: file for file in GOLDEN["ess_nno"]["files"]}
US = 1_000_000
TYPES = {
    "rss": ("application/rss+xml; charset=utf-8", "application/rss+xml"),
    "jsonfeed": ("application/feed+json; charset=utf-8", "application/feed+json"),
    "ess": ("application/ess", "application/ess"),
    "opml": ("text/x-opml; charset=utf-8", "text/x-opml"),
}


def dated(title: str, time_s: int) -> str:
    time = format_datetime(time_s * US)
    return f"<entry xmlns='{ATOM_NS}'><title>{title}</title><published>{time}</published></entry>"


ATOM = f"{{{ATOM_NS}}}"


async def filled(web: Web, ids: str) -> None:
    await web.component.create(ALICE, "notes", title="Notes & more", description="What is new")
    for item_id in ids.split():
        await web.component.publish(ALICE, "notes", item_id)
        web.component.clock.advance(60)


def ids_of(form: str, body: bytes) -> list[str]:
    """The ids in a document, in its order."""
    if form in ("atom", "rss"):
        return [node.text or "" for node in etree.fromstring(body).iter("{http://fanout.org/protocol/atom}id")]
    if form == "jsonfeed":
        return [
            item["_smartfeeds"]["id"] if "_smartfeeds" in item else item["id"] for item in json.loads(body)["items"]
        ]
    return [outline.text for outline in read_outline(body).outlines]


@pytest.mark.parametrize("name", ["ess-1.ess", "ess-2.ess"])
async def test_an_ess_file_is_golden_to_the_byte(web: Web, name: str) -> None:
    """[ESS-001] [ESS-003] [ESS-004] [ESS-005] [ESS-009] [ESS-025] [A-100] [A-101] The newest entries, times and
    checksums as in the golden file; its address is that of the feed's RSS document, its type application/ess."""
    file = FILES[name]
    web.component.clock.now_us = 1_400_000_000 * US
    await web.component.create(ALICE, "notes")
    for number, one in enumerate(file["input"]):
        await web.component.publish(ALICE, "notes", f"i{number}", dated(one["title"], one["time"]))
    web.component.clock.now_us = file["now"] * US
    golden_url = file["text"].split(", ")[1]

    got = await web.get("/feeds/notes.ess")

    assert got.body == file["text"].replace(golden_url, f"{web.origin}/feeds/notes.rss").encode()
    assert (got.status, got.header("Content-Type")) == (200, file["content_type"])


async def test_ess_takes_titles_as_they_stand_and_leaves_deleted_items_out(web: Web) -> None:
    """[ESS-007] [A-106] The checksum of a title that is not trimmed; what was deleted is not listed."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", dated(" hello world ", 1_700_000_000))
    await web.component.publish(ALICE, "notes", "b")
    await web.component.retract(ALICE, "notes", "b")
    for path in ("/feeds/notes.ess", "/feeds/notes.ess?order=modified"):
        entries = read_ess((await web.get(path)).body).entries
        assert [entry.checksum for entry in entries] == [dumb_checksum(" hello world ")]


async def test_rss_092_by_suffix(web: Web) -> None:
    """[RSS-001] [A-153] The newest item first; entries without a page of their own link to their page here."""
    await filled(web, "a b")
    response = await web.get("/feeds/notes.rss092")
    assert rss092_faults(response.body) == []
    assert response.header("Content-Type") == "application/rss+xml; charset=utf-8"
    links = [node.text for node in etree.fromstring(response.body).iterfind("channel/item/link")]
    assert links == [f"{web.origin}/entries/notes/{item_id}" for item_id in "ba"]


@pytest.mark.parametrize("form", TYPES)
async def test_each_document_by_suffix_and_by_accept(web: Web, form: str) -> None:
    """[SF-058] [RSS-001] [ESS-025] The suffix and the Accept header give the same bytes under the same media type."""
    await filled(web, "a b")
    media_type, accept_types = TYPES[form]
    by_suffix = await web.get(f"/feeds/notes.{form}", accept="text/plain")
    by_accept = await web.get("/feeds/notes/", accept=accept_types)
    assert by_suffix.status == by_accept.status == 200
    assert by_suffix.header("Content-Type") == by_accept.header("Content-Type") == media_type
    assert by_suffix.body == by_accept.body


@pytest.mark.parametrize("form", TYPES)
async def test_a_document_is_not_sent_again_until_the_feed_changes(web: Web, form: str) -> None:
    """[A-153] Conditional requests work for every form, and a change gives another tag."""
    await filled(web, "a")
    first = await web.get(f"/feeds/notes.{form}")
    again = await web.get(f"/feeds/notes.{form}", If_None_Match=first.header("ETag"))
    assert (again.status, again.body, again.header("ETag")) == (304, b"", first.header("ETag"))
    await web.component.publish(ALICE, "notes", "b")
    changed = await web.get(f"/feeds/notes.{form}", If_None_Match=first.header("ETag"))
    assert changed.status == 200
    assert changed.header("ETag") != first.header("ETag")


async def test_what_the_channel_says(web: Web) -> None:
    """[RSS-001] [RSS-003] [RSS-031] Title, link to the feed, description, and its own address."""
    await filled(web, "a b")
    root = etree.fromstring((await web.get("/feeds/notes.rss")).body)
    assert (root.tag, root.get("version")) == ("rss", "2.0")
    texts = [root.findtext(f"channel/{name}") for name in ("title", "link", "description")]
    assert texts == ["Notes & more", f"{web.origin}/feeds/notes/", "What is new"]
    links = {str(one.get("rel")): one.get("href") for one in root.iterfind(f"channel/{{{ATOM_NS}}}link")}
    assert links == {"self": f"{web.origin}/feeds/notes.rss"}


async def test_what_an_atom_document_says(web: Web) -> None:
    """[SF-058] [A-153] The document links to itself and to the page; a pull of the same view still says its base URL,
    oldest first."""
    await filled(web, "a b")
    root = etree.fromstring((await web.get("/feeds/notes.atom?order=modified")).body)
    links = {str(link.get("rel")): link.get("href") for link in root.iterfind(f"{ATOM}link")}
    assert links == {
        "self": f"{web.origin}/feeds/notes.atom?order=modified",
        "alternate": f"{web.origin}/feeds/notes/?order=modified",
    }
    assert ids_of("atom", etree.tostring(root)) == ["b", "a"]
    for path in ("/feeds/notes/?since=time:0", "/feeds/notes.atom?since=time:0"):
        pull = await web.get(path, accept="application/atom+xml")
        assert ids_of("atom", pull.body) == ["a", "b"]
        (link,) = etree.fromstring(pull.body).iterfind(f"{ATOM}link")
        assert (link.get("rel"), link.get("href")) == ("self", f"{web.origin}/feeds/notes/")


async def test_documents_of_an_imported_feed_name_its_page_and_picture(web: Web) -> None:
    """The page of a document is that of this service, so the original page is where it comes from (`via`). Hub and
    cloud notify of the original alone."""
    channel = Channel(language="de", icon="http://e.example/i.png", hub="http://e.example/hub", categories=(("C", ""),))
    document = FeedDocument("RSS", title="Notes", link="http://e.example/", channel=channel)
    await import_document(web.component.app.service, "notes", document, Jid("alice", "a.example"))

    here = f"{web.origin}/feeds/notes/"
    atom = etree.fromstring((await web.get("/feeds/notes.atom")).body)
    links = {str(link.get("rel")): link.get("href") for link in atom.iterfind(f"{ATOM}link")}
    assert links == {"self": f"{web.origin}/feeds/notes.atom", "alternate": here, "via": "http://e.example/"}
    assert atom.findtext(f"{ATOM}icon") == "http://e.example/i.png"
    assert [one.get("term") for one in atom.iterfind(f"{ATOM}category")] == ["C"]

    rss = etree.fromstring((await web.get("/feeds/notes.rss")).body).find("channel")
    assert rss is not None
    links = {str(link.get("rel")): link.get("href") for link in rss.iterfind(f"{ATOM}link")}
    assert links == {"self": f"{web.origin}/feeds/notes.rss", "via": "http://e.example/"}
    texts = [rss.findtext(name) for name in ("link", "language", "image/url", "category")]
    assert texts == [here, "de", "http://e.example/i.png", "C"]

    json_feed = (await web.get("/feeds/notes.jsonfeed")).json
    assert [json_feed[name] for name in ("home_page_url", "icon", "language")] == [here, "http://e.example/i.png", "de"]
    assert json_feed["_smartfeeds"]["via"] == "http://e.example/"
    assert "hubs" not in json_feed


@pytest.mark.parametrize("access_model", ["open", "authorize"])
async def test_entries_without_a_page_link_to_their_page_here(web: Web, access_model: str) -> None:
    """An entry with a link of its own keeps it. Readers of a closed feed can open the page with the same token. Pulls
    and items over XMPP stay as they are."""
    await web.component.create(ALICE, "notes", access_model=access_model)
    own = "<link href='https://x.example/'/>"
    for item_id, link in (("a b", ""), ("own", own)):
        payload = f"<entry xmlns='{ATOM_NS}'><title>A</title><content>c</content>{link}</entry>"
        await web.component.publish(ALICE, "notes", item_id, payload)
    token = await bearer(web, ALICE, TokenScope.READ)

    async def document(suffix: str) -> bytes:
        got = await web.get(f"/feeds/notes.{suffix}", Authorization=token)
        assert got.status == 200
        return got.body

    page = f"{web.origin}/entries/notes/a%20b"
    pages = ["https://x.example/", page]
    atom = etree.fromstring(await document("atom"))
    assert [one.get("href") for one in atom.iterfind(f"{ATOM}entry/{ATOM}link[@rel='alternate']")] == pages
    assert [one.text for one in etree.fromstring(await document("rss")).iterfind("channel/item/link")] == pages
    assert [one["url"] for one in json.loads(await document("jsonfeed"))["items"]] == pages
    pull = await web.get("/feeds/notes/?since=time:0", accept="application/atom+xml", Authorization=token)
    assert pull.text.count("<link") - pull.text.count('rel="self"') == 1
    assert page not in etree.tostring(await web.component.get(ALICE, "<items node='notes'/>")).decode()
    assert (await web.get("/entries/notes/a%20b", accept="text/html", Authorization=token)).status == 200


async def test_page_of_a_feed_is_the_same_in_every_document_and_over_xmpp(start_web: WebStarter) -> None:
    """[xep-map 236] Atom `alternate`, RSS `link`, JSON Feed `home_page_url` and the metadata of the node."""
    web = await start_web(http={"base_url": "https://h.example/under"})
    await filled(web, "a")
    page = "https://h.example/under/feeds/notes/"
    atom = etree.fromstring((await web.get("/under/feeds/notes.atom")).body)
    (link,) = atom.iterfind(f"{ATOM}link[@rel='alternate']")
    assert (link.get("href"), link.get("type")) == (page, "text/html")
    assert etree.fromstring((await web.get("/under/feeds/notes.rss")).body).findtext("channel/link") == page
    assert (await web.get("/under/feeds/notes.jsonfeed")).json["home_page_url"] == page
    info = "<query xmlns='http://jabber.org/protocol/disco#info' node='notes'/>"
    answer = await web.component.ask(ALICE, "get", info)
    fields = {field.get("var"): field for field in answer.iter("{jabber:x:data}field")}
    assert fields[f"{ATOM}link#alternate"][0].text == page


async def test_atom_elements_come_before_what_the_service_adds(web: Web) -> None:
    """[SF-070] RFC 4287 4.1.2: every entry has an author, and content or a link; fo:id is under a prefix, because
    parsers that ignore namespaces take the first id, title or link for the entry's own."""
    await web.component.create(ALICE, "notes", title="Notes")
    payload = f"<entry xmlns='{ATOM_NS}'><title>A</title></entry>"
    await web.component.publish(ALICE, "notes", "a/b", payload=payload)
    for path in ("/feeds/notes.atom", "/feeds/notes/?since=time:0", "/entries/notes/a%2Fb"):
        body = (await web.get(path, accept="application/atom+xml")).body
        (entry,) = etree.fromstring(body).iter(f"{ATOM}entry")
        assert [child.tag.rpartition("}")[2] for child in entry][-3:] == ["author", "link", "id"]
        assert b"<fo:id " in body and body.count(b"<id") == (1 if "entries" in path else 2)
        assert entry.findtext(f"{ATOM}author/{ATOM}name") == ("notes" if "entries" in path else "Notes")
        link = entry.find(f"{ATOM}link[@rel='alternate']")
        assert link is not None and link.get("href") == f"{web.origin}/entries/notes/a%2Fb"
    shown = (await web.get("/feeds/notes/?since=time:0&sync=true", accept="application/atom+xml")).body
    assert b"author" not in shown and b"alternate" not in shown


async def stored(web: Web) -> bytes:
    """The only entry of the feed, as XMPP has it."""
    answer = await web.component.get(ALICE, "<items node='notes'/>")
    (found,) = answer.iter(f"{ATOM}entry")
    return etree.tostring(found, method="c14n", exclusive=True)


async def test_what_a_document_adds_is_not_published_again(web: Web) -> None:
    """[SF-070] [SF-091] An entry that was read, and is put back as it is, is stored as it was."""
    await web.component.create(ALICE, "notes")
    await web.component.publish(ALICE, "notes", "a", payload=f"<entry xmlns='{ATOM_NS}'><title>A</title></entry>")
    token = await bearer(web, ALICE, TokenScope.PUBLISH, "notes")
    before = await stored(web)
    read = (await web.get("/entries/notes/a", accept="application/atom+xml")).body
    put = await web.ask("PUT", "/entries/notes/a", read, Authorization=token, Content_Type="application/atom+xml")
    assert put.status == 200
    assert await stored(web) == before


async def test_what_a_json_feed_says(web: Web) -> None:
    """[A-35] Title, the page of the feed, its own address, and every item with its id."""
    await filled(web, "a b")
    feed = (await web.get("/feeds/notes.jsonfeed")).json
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert (feed["title"], feed["description"]) == ("Notes & more", "What is new")
    assert (feed["home_page_url"], feed["feed_url"]) == (
        f"{web.origin}/feeds/notes/",
        f"{web.origin}/feeds/notes.jsonfeed",
    )


@pytest.mark.parametrize(("form", "deleted"), [("rss", 0), ("jsonfeed", 1), ("opml", 0)])
async def test_tombstones_where_the_format_has_a_form_for_them(web: Web, form: str, deleted: int) -> None:
    """[A-18] In modified order JSON Feed marks a deleted item; RSS and OPML have no form for that."""
    await filled(web, "a b")
    await web.component.retract(ALICE, "notes", "a")
    got = await web.get(f"/feeds/notes.{form}?order=modified")
    if form == "opml":
        assert ids_of(form, got.body) == ["b"]
    else:
        read = read_document(got.body)
        assert sorted(item.id for item in read.items if not item.deleted) == ["b"]
        assert [item.id for item in read.items if item.deleted] == ["a"] * deleted


@pytest.mark.parametrize("form", ["atom", "rss", "jsonfeed"])
async def test_the_next_document_holds_older_items_until_there_are_none(web: Web, form: str) -> None:
    """[SF-020] [SF-021] [A-153] Newest first; whoever follows the links has every item once, deleted ones left out."""
    await filled(web, "a b c d e f")
    await web.component.retract(ALICE, "notes", "c")
    path, pages = f"/feeds/notes.{form}?max=2", []
    while path:
        body = (await web.get(path)).body
        pages.append(ids_of(form, body))
        path = next_of(form, body).removeprefix(web.origin)
    assert pages == [["f", "e"], ["d", "b"], ["a"]]


def next_of(form: str, body: bytes) -> str:
    if form == "jsonfeed":
        return str(json.loads(body).get("next_url", ""))
    parent = etree.fromstring(body) if form == "atom" else etree.fromstring(body).find("channel")
    assert parent is not None
    found = parent.find(f"{ATOM}link[@rel='next']")
    return "" if found is None else str(found.get("href"))


async def test_a_view_keeps_its_parameters_in_every_address(web: Web) -> None:
    """[SF-057] A document of a view names the view as itself, as its page and as the next document."""
    await filled(web, "a b c")
    feed = (await web.get("/feeds/notes.jsonfeed?order=created&max=1")).json
    assert feed["feed_url"] == f"{web.origin}/feeds/notes.jsonfeed?order=created"
    assert feed["home_page_url"] == f"{web.origin}/feeds/notes/?order=created"
    assert feed["next_url"].startswith(f"{web.origin}/feeds/notes.jsonfeed?order=created&until=cursor%3A")
    address = (await web.get("/feeds/notes.ess?order=created")).text.split(", ")[1]
    assert address == f"{web.origin}/feeds/notes.rss?order=created"


async def test_every_answer_of_a_feed_links_to_its_other_forms(web: Web) -> None:
    """[SF-112] [ESS-024] JSON, Atom, RSS, JSON Feed and ESS of the feed, and NNO of all feeds."""
    await filled(web, "a")
    link = (await web.get("/feeds/notes/")).header("Link")
    for path, media_type in {
        "/feeds/notes.json": "application/json",
        "/feeds/notes.atom": "application/atom+xml",
        "/feeds/notes.rss": "application/rss+xml",
        "/feeds/notes.jsonfeed": "application/feed+json",
        "/feeds/notes.ess": "application/ess",
        "/feeds.nno": "application/nno",
    }.items():
        assert f'<{web.origin}{path}>; rel="alternate"; type="{media_type}"' in link.split(", ")


async def test_documents_are_read_by_whom_the_feed_is_for(web: Web) -> None:
    """[SF-111] Of a feed with a whitelist nobody gets a document who may not read it."""
    await web.component.create(ALICE, "notes", access_model="whitelist")
    await web.component.affiliate(ALICE, "notes", BOB, "member")
    for form in TYPES:
        got: Any = await web.get(f"/feeds/notes.{form}")
        assert got.status == 404


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("form", ["atom", "rss"])
async def test_browser_gets_a_document_with_a_style_sheet(start_web: WebStarter, form: str) -> None:
    """The document may load the style sheet and nothing else. Its content is that of the document for feed readers."""
    web = await start_web(http={"base_url": "https://example.org/town"})
    await filled(web, "a b")
    styled = await web.get(f"/town/feeds/notes.{form}", accept=BROWSER)
    plain = await web.get(f"/town/feeds/notes.{form}")
    assert styled.header("Content-Type") == "application/xml; charset=utf-8"
    policy = "default-src 'none'; style-src 'self'; frame-ancestors 'none'"
    assert styled.header("Content-Security-Policy") == policy
    assert "Accept" in styled.header("Vary")
    assert styled.header("ETag") != plain.header("ETag")
    (instruction,) = etree.fromstring(styled.body).xpath("preceding::processing-instruction()")
    assert instruction.target == "xml-stylesheet"
    assert instruction.get("type") == "text/css"
    href = instruction.get("href")
    assert href.startswith("/town/static/feed.")
    sheet = await web.get(href)
    assert (sheet.status, sheet.header("Content-Type")) == (200, "text/css; charset=utf-8")
    declaration, _, rest = styled.body.partition(b"\n")
    assert declaration + b"\n" + rest.partition(b"\n")[2] == plain.body


@pytest.mark.parametrize("path", ["/feeds/notes.atom", "/feeds/notes.rss", "/river.atom"])
async def test_style_sheet_has_the_words_of_the_reader(web: Web, path: str) -> None:
    """The explanation in the document is in a language of the browser."""
    await filled(web, "a b")
    tags = set()
    for language, words in (("de-AT, en", "Dies ist ein Feed"), ("en", "This is a feed"), ("tlh", "This is a feed")):
        got = await web.get(path, accept=BROWSER, Accept_Language=language)
        assert (got.status, got.header("Content-Type")) == (200, "application/xml; charset=utf-8")
        assert "Accept-Language" in got.header("Vary") and "style-src 'self'" in got.header("Content-Security-Policy")
        (instruction,) = etree.fromstring(got.body).xpath("preceding::processing-instruction()")
        sheet = (await web.get(instruction.get("href"))).text
        assert f'--what: "{words}' in sheet and "var(--what)" in sheet
        tags.add(got.header("ETag"))
        again = await web.get(path, accept=BROWSER, Accept_Language=language, If_None_Match=got.header("ETag"))
        assert again.status == 304
    assert len(tags) == 2
    plain = await web.get(path, Accept_Language="de")
    assert b"xml-stylesheet" not in plain.body and "Accept-Language" not in plain.header("Vary")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/feeds/notes.atom", ""),
        ("/feeds/notes.atom", "*/*"),
        ("/feeds/notes.rss", "application/rss+xml, text/html;q=0.5"),
        ("/feeds/notes.atom", "application/atom+xml, application/xml, */*;q=0.1"),
        ("/feeds/notes.atom?sync=true", BROWSER),
        ("/feeds/notes.atom?since=time:2000-01-01T00:00:00Z", BROWSER),
    ],
)
async def test_programs_get_documents_without_a_style_sheet(web: Web, path: str, accept: str) -> None:
    """Feed readers do not prefer HTML; documents with sync data and pages with a position are for programs only."""
    await filled(web, "a")
    document = await web.get(path, accept=accept)
    assert document.status == 200
    assert b"xml-stylesheet" not in document.body
    assert document.header("Content-Type") != "application/xml; charset=utf-8"
    assert "style-src" not in document.header("Content-Security-Policy")
