"""Publishing in one line: texts, headers, forms, Markdown and short JSON (docs/http.md, Publish)."""

import base64
import json
import threading
from typing import Any
from urllib.parse import urlencode

import pytest
from lxml import etree

from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring import posts, rights
from smartfeeds.formats.plain import html_text
from smartfeeds.formats.post import Post
from smartfeeds.formats.xml import Element
from support.bearer import bearer
from support.component import ALICE
from support.raw import connected
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "application/atom+xml"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
A = "{http://www.w3.org/2005/Atom}"


async def post(web: Web, token: str, body: bytes, media_type: str = FORM, query: str = "", **headers: str) -> Got:
    """POST as `curl -d` sends it, unless another media type is given."""
    return await web.ask(
        "POST", f"/entries/notes/{query}", body, accept=ATOM, Authorization=token, Content_Type=media_type, **headers
    )


def fields(got: Got) -> dict[str, Any]:
    """The parts of the stored entry that a post sets."""
    assert got.status == 201, got.text
    root = etree.fromstring(got.body)
    content = root.find(f"{A}content")
    links = {link.get("rel"): link.get("href") for link in root.findall(f"{A}link")}
    return {
        "title": root.findtext(f"{A}title"),
        "content": None if content is None else (content.get("type", "text"), content.text),
        "link": links.get("alternate"),
        "file": links.get("enclosure"),
        "tags": [category.get("term") for category in root.findall(f"{A}category")],
    }


async def test_entry_with_markdown_waits_for_the_limit_of_its_feed(
    notes: Web, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps the service from looking for the options of the feed keeps it from publishing. A text needs none."""

    async def refuse(*_: object) -> None:
        raise FeedError(Condition.BUSY)

    monkeypatch.setattr(rights, "ask", refuse)
    assert (await post(notes, token, b"# Title\n\n*text*", "text/markdown")).status == 429
    assert (await notes.get("/feeds/notes/?timeout=0")).json["count"] == 0
    assert (await post(notes, token, b"Hello")).status == 201


# Texts.


@pytest.mark.parametrize("media_type", [FORM, "text/plain", "text/plain; charset=utf-8", ""])
async def test_text_is_an_entry(notes: Web, token: str, media_type: str) -> None:
    """As `curl -u :TOKEN -d 'text'` sends it: the answer is the item, and everybody reads it."""
    got = await post(notes, token, "Döner & more <today>".encode(), media_type)
    assert (fields(got)["title"], fields(got)["content"]) == ("Döner & more <today>", None)
    assert got.header("Location").startswith(f"{notes.origin}/entries/notes/")
    (item,) = (await notes.get("/feeds/notes/")).json["items"]
    assert item["object"]["displayName"] == "Döner & more <today>"


async def test_slash_at_the_end_may_be_missing(notes: Web, token: str) -> None:
    """Only for a post: a DELETE without an id must not purge the feed by mistake."""
    got = await notes.ask("POST", "/entries/notes", b"hello", Authorization=token, Content_Type=FORM)
    assert (got.status, got.header("Location").startswith(f"{notes.origin}/entries/notes/")) == (201, True)
    admin = await bearer(notes, ALICE, TokenScope.ADMIN)
    assert (await notes.ask("DELETE", "/entries/notes", Authorization=admin)).status == 404


async def test_token_is_the_password_of_basic(notes: Web, token: str) -> None:
    """[SF-110] `curl -u :TOKEN`."""
    basic = base64.b64encode(f":{token.removeprefix('Bearer ')}".encode()).decode()
    assert (await post(notes, f"Basic {basic}", b"hello")).status == 201
    anonymous = await notes.ask("POST", "/entries/notes/", b"hello", Content_Type=FORM)
    assert (anonymous.status, "scope publish" in anonymous.json["detail"]) == (401, True)


async def test_first_line_of_a_long_text_is_its_title(notes: Web, token: str) -> None:
    got = fields(await post(notes, token, b"Disk full\r\n\r\non host a\r\n", "text/plain"))
    assert (got["title"], got["content"]) == ("Disk full", ("text", "on host a"))
    long = fields(await post(notes, token, b"word " * 100, "text/plain"))
    assert (len(long["title"]) <= 60, long["title"][-1], long["content"][1].count("word")) == (True, "…", 100)


async def test_put_takes_a_text_too(notes: Web, token: str) -> None:
    """[SF-110] The same id again replaces the item."""
    for text, status in ((b"one", 201), (b"two", 200)):
        got = await notes.ask("PUT", "/entries/notes/x", text, Authorization=token, Content_Type=FORM)
        assert (got.status, got.json["object"]["displayName"]) == (status, text.decode())


async def test_control_characters_are_replaced(notes: Web, token: str) -> None:
    """[xep-map 246] The output of a command may have colours."""
    assert fields(await post(notes, token, b"\x1b[1mfull\x00"))["title"] == "\ufffd[1mfull\ufffd"


@pytest.mark.parametrize("body", [b"", b" \n"])
async def test_empty_post_is_rejected(notes: Web, token: str, body: bytes) -> None:
    got = await post(notes, token, body)
    assert (got.status, "the entry is empty" in got.json["detail"]) == (400, True)


@pytest.mark.parametrize("body", [b"caf\xe9", b"\xff\xfe\x00"])
async def test_text_that_is_not_utf8_is_rejected(notes: Web, token: str, body: bytes) -> None:
    got = await post(notes, token, body, "text/plain")
    assert (got.status, "not UTF-8" in got.json["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (b"<entry xmlns='http://www.w3.org/2005/Atom'/>", ATOM),
        (b" <?xml version='1.0'?><rss/>", ATOM),
        (b'{"title": "x"}', JSON),
    ],
)
@pytest.mark.parametrize("media_type", [FORM, ""])
async def test_documents_without_their_media_type_are_no_texts(
    notes: Web, token: str, body: bytes, advice: str, media_type: str
) -> None:
    """[SF-114] `curl -d @entry.xml` without a header would publish the XML as a text."""
    got = await post(notes, token, body, media_type)
    assert (got.status, f"Content-Type: {advice}" in got.json["detail"]) == (415, True)
    assert fields(await post(notes, token, body, "text/plain"))["title"] == body.decode().strip()


SHAPES = {
    "one line": "We are open",
    "a line and more": "We are open\n\nCome in",
    "a long paragraph": "We walked along the river, " * 9,
    "a list": "- milk\n- tea\n- bread",
    "code": "```\nls -l\n```\n\nlists the files",
    "a heading": "# We are open\n\nCome in",
    "a picture": "![A cat](https://x.example/c.jpg)",
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "", FORM, "text/markdown", "text/html", pytest.param(JSON, marks=pytest.mark.needs("documents"))],
)
async def test_nobody_reads_a_first_line_twice(notes: Web, token: str, media_type: str, shape: str) -> None:
    """The title is a line that is not in the text, or it is the beginning of the text and shorter than it."""
    text = SHAPES[shape]
    body = json.dumps({"content": text}) if media_type == JSON else text
    got = fields(await post(notes, token, body.encode(), media_type))
    title, content = got["title"], got["content"]
    assert title and len(title) <= 140
    if content is not None:
        shown = html_text(content[1])
        # A picture has no text that could be read twice.
        assert not shown or (title.removesuffix("…") != shown and not shown.startswith(title))
    elif media_type != "text/markdown":
        assert title == " ".join(text.split())


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("text/plain", b"a\nb"),
        ("text/markdown", b"*a*"),
        ("text/html", b"<b>a</b>"),
        (FORM, b"title=T&content=x"),
        ("image/gif", b"GIF89a"),
        pytest.param(JSON, b'{"title": "x"}', marks=pytest.mark.needs("documents")),
        (JSON, b'{"object": {"displayName": "x"}, "verb": "post"}'),
        pytest.param("application/feed+json", b'{"title": "x"}', marks=pytest.mark.needs("documents")),
        (ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title></entry>"),
        (ATOM, b"<a:entry xmlns:a='http://www.w3.org/2005/Atom'><a:title>x</a:title></a:entry>"),
        (ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'><source><title>A blog</title></source></entry>"),
        (ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'><author xmlns='urn:x'><name>Ann</name></author></entry>"),
    ],
)
async def test_post_names_the_owner_of_the_token_as_its_author(
    notes: Web, token: str, media_type: str, body: bytes
) -> None:
    got = await post(notes, token, body, media_type)
    root = etree.fromstring(got.body)
    assert root.findtext(f"{A}author/{A}name") == "alice"
    assert root.findtext(f"{A}author/{A}uri") == "xmpp:alice@example.org"


@pytest.mark.needs("documents")
async def test_post_with_an_author_keeps_it(notes: Web, token: str) -> None:
    got = await post(notes, token, b'{"title": "x", "authors": [{"name": "Ann"}]}', JSON)
    root = etree.fromstring(got.body)
    assert [author.findtext(f"{A}name") for author in root.findall(f"{A}author")] == ["Ann"]


async def test_first_post_of_a_feed_names_its_author_too(start_web: WebStarter) -> None:
    """A token with the scope admin creates the feed by publishing in it."""
    web = await start_web(pubsub={"auto_create": True})
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    headers = {"Authorization": token, "Content_Type": "text/plain"}
    got = await web.ask("POST", "/entries/fresh/", b"a\nb", accept=ATOM, **headers)
    assert (got.status, b"xmpp:alice@example.org" in got.body) == (201, True)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("text/plain", b"a\nb"),
        (ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'><title>x</title></entry>"),
        (JSON, b'{"object": {"displayName": "x"}, "verb": "post"}'),
    ],
)
async def test_post_names_nobody_in_a_feed_that_hides_who_publishes(notes: Web, media_type: str, body: bytes) -> None:
    await notes.component.create(ALICE, "tips", itemreply="owner")
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    got = await notes.ask("POST", "/entries/tips/", body, accept=ATOM, Authorization=token, Content_Type=media_type)
    assert (got.status, b"alice" in got.body) == (201, False)


@pytest.mark.parametrize(
    ("media_type", "body", "is_answer"),
    [
        (FORM, b"content=x&in-reply-to=first", True),
        (FORM, b"content=x&reply_to=first", True),
        (FORM, b"content=x&colour=red", False),
        pytest.param(JSON, b'{"content": "x", "in_reply_to": "first"}', True, marks=pytest.mark.needs("documents")),
        pytest.param(JSON, b'{"content": "x", "inReplyTo": "first"}', True, marks=pytest.mark.needs("documents")),
        pytest.param(JSON, b'{"content": "x", "colour": "red"}', False, marks=pytest.mark.needs("documents")),
    ],
)
async def test_post_that_answers_an_entry_learns_the_formats_that_can(
    notes: Web, token: str, media_type: str, body: bytes, is_answer: bool
) -> None:
    got = await post(notes, token, body, media_type)
    advice = "; to answer an entry, publish Atom with thr:in-reply-to, or send in-reply-to by Micropub"
    assert (got.status, advice in got.json["detail"]) == (400, is_answer)


# Headers and parameters.


@pytest.mark.parametrize(
    "headers",
    [
        {"Title": "Ding", "Tags": "a, b,,a", "Click": "https://x.example/", "Attach": "https://x.example/p.jpg"},
        {"X_Title": "Ding", "X_Tag": "a,b", "X_Click": "https://x.example/", "X_Attach": "https://x.example/p.jpg"},
    ],
)
async def test_headers_of_ntfy(notes: Web, token: str, headers: dict[str, str]) -> None:
    got = fields(await post(notes, token, b"dong", **headers))
    assert got == {
        "title": "Ding",
        "content": ("text", "dong"),
        "link": "https://x.example/",
        "file": "https://x.example/p.jpg",
        "tags": ["a", "b"],
    }


@pytest.mark.parametrize("names", [("title", "tags", "click", "message"), ("t", "ta", "link", "m")])
async def test_fields_in_the_query(notes: Web, token: str, names: tuple[str, ...]) -> None:
    query = urlencode(dict(zip(names, ("Dïng", "ä,b", "https://x.example/?a=1&b=2", "dong"), strict=True)))
    got = fields(await post(notes, token, b"", query=f"?{query}"))
    assert (got["title"], got["tags"], got["link"]) == ("Dïng", ["ä", "b"], "https://x.example/?a=1&b=2")
    assert got["content"] == ("text", "dong")


async def test_header_wins_over_query(notes: Web, token: str) -> None:
    assert fields(await post(notes, token, b"x", query="?title=q", Title="h"))["title"] == "h"


@pytest.mark.parametrize(
    ("value", "title"),
    [("Grüße 🎉", "Grüße 🎉"), ("=?utf-8?B?R3LDvMOfZQ==?=", "Grüße"), ("=?iso-8859-1?Q?Gr=FC=DFe?= x", "Grüße x")],
)
async def test_headers_are_utf8_or_encoded_words(notes: Web, token: str, value: str, title: str) -> None:
    """RFC 2047."""
    assert fields(await post(notes, token, b"x", Title=value))["title"] == title


@pytest.mark.parametrize(
    "value", ["=?utf-8?B?R?=", "=?klingon?Q?x?=", "=?utf-8?Q?=ff?=", b"Gr\xfc\xdfe".decode("utf-8", "surrogateescape")]
)
async def test_headers_that_cannot_be_read(notes: Web, token: str, value: str) -> None:
    got = await raw_title(notes, token, value.encode("utf-8", "surrogateescape"))
    assert (got.status, "the header Title" in got.json["detail"]) == (400, True)
    assert (await notes.get("/feeds/notes/?timeout=0")).json["items"] == []


async def raw_title(web: Web, token: str, value: bytes) -> Got:
    """A post with a header in bytes that are not UTF-8."""
    async with connected(web.port) as raw:
        head = f"POST /entries/notes/ HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Length: 1\r\nTitle: "
        raw.writer.write(head.encode() + value + b"\r\n\r\nx")
        heard = await raw.hear()
        return Got(heard.status, heard.headers, heard.body)


@pytest.mark.parametrize("address", ["javascript:alert(1)", "x.example", "java\tscript:1", "https://a b/"])
@pytest.mark.parametrize(("name", "field"), [("click", "link"), ("attach", "attach")])
async def test_addresses_that_no_reader_should_open(
    notes: Web, token: str, address: str, name: str, field: str
) -> None:
    got = await post(notes, token, b"x", query=f"?{urlencode({name: address})}")
    assert (got.status, got.json["detail"].startswith(f"{field}:")) == (400, True)


@pytest.mark.needs("documents")
@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (FORM, "content=x&attach={}"),
        (JSON, '{{"title": "x", "attachments": [{{"url": "{}", "mime_type": "audio/mpeg"}}]}}'),
        ("application/feed+json", '{{"title": "x", "attachments": [{{"url": "{}", "mime_type": "audio/mpeg"}}]}}'),
        (JSON, '{{"object": {{"displayName": "x", "attachments": [{{"url": "{}", "mimeType": "audio/mpeg"}}]}}}}'),
        ("multipart/form-data; boundary=b", '--b\r\nContent-Disposition: form-data; name="attach"\r\n\r\n{}\r\n--b--'),
    ],
)
async def test_files_elsewhere_are_on_the_web(notes: Web, token: str, media_type: str, body: str) -> None:
    """The path of a file on the computer of the author is a mistake that no reader of the feed could open."""
    for address in ("file:///home/ann/a.mp3", "ftp://x.example/a.mp3", "https:a.mp3", "a.mp3"):
        got = await post(notes, token, body.format(address).encode(), media_type)
        assert (got.status, repr(address) in got.json["detail"]) == (400, True)
        assert "it begins with https://" in got.json["detail"]
    assert (await post(notes, token, body.format("HTTPS://x.example/a.mp3").encode(), media_type)).status == 201


async def test_documents_have_their_own_fields(notes: Web, token: str) -> None:
    """A title beside an Atom entry is not lost without a word."""
    for media_type, body in ((ATOM, b"<entry xmlns='http://www.w3.org/2005/Atom'/>"), (JSON, b'{"title":"x"}')):
        got = await post(notes, token, body, media_type, Title="other")
        assert (got.status, got.json["detail"].startswith("title:")) == (400, True)


async def test_too_many_tags(notes: Web, token: str) -> None:
    got = await post(notes, token, b"x", Tags=",".join(map(str, range(101))))
    assert (got.status, "at most 100" in got.json["detail"]) == (400, True)


# Forms.


async def test_form_with_known_fields(notes: Web, token: str) -> None:
    body = urlencode(
        [("title", "T"), ("content", "a\r\nb"), ("tags", "x,y"), ("tags", "z"), ("link", "https://x.example/")]
    )
    assert fields(await post(notes, token, body.encode())) == {
        "title": "T",
        "content": ("text", "a\nb"),
        "link": "https://x.example/",
        "file": None,
        "tags": ["x", "y", "z"],
    }


async def test_form_with_html(notes: Web, token: str) -> None:
    got = fields(await post(notes, token, urlencode({"content_html": "<p>Hi <b>there</b></p>"}).encode()))
    assert (got["title"], got["content"]) == ("Hi…", ("html", "<p>Hi <b>there</b></p>"))


@pytest.mark.parametrize("text", ["a=b", "x=1&y=2", "1 + 1 = 2", "title=a & b", "100%", "?", "a%20b", "t=1&m=2"])
async def test_texts_that_look_like_forms(notes: Web, token: str, text: str) -> None:
    """A body without the name of a field is the text itself, byte by byte."""
    assert fields(await post(notes, token, text.encode()))["title"] == text


@pytest.mark.parametrize("body", [b"title=a&titel=b", b"title=a&title=b", b"content=a&content_html=b", b"title=%ff"])
async def test_forms_with_faults(notes: Web, token: str, body: bytes) -> None:
    """Nothing of a form is lost without a word."""
    assert (await post(notes, token, body)).status == 400


@pytest.mark.parametrize("media_type", [FORM, "text/plain", ""])
@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"}],
)
async def test_pages_elsewhere_cannot_publish(notes: Web, token: str, media_type: str, headers: dict[str, str]) -> None:
    """[SF-111] A browser that knows the password sends every kind of form, whatever page it is on."""
    assert (await post(notes, token, b"hello", media_type, **headers)).status == 403
    assert (await notes.get("/feeds/notes/?timeout=0")).json["items"] == []


async def test_browser_without_fetch_metadata_but_with_a_cookie(notes: Web) -> None:
    """A session of a browser is no credential of a program."""
    got = await notes.ask("POST", "/entries/notes/", b"x", Content_Type=FORM, Cookie="session=1")
    assert got.status == 403


# Markdown and HTML.


async def test_markdown_is_stored_as_html(notes: Web, token: str) -> None:
    body = b"# Release *2*\n\nHello **you**\n\n| a |\n|---|\n| ~~b~~ |\n"
    got = fields(await post(notes, token, body, "text/markdown"))
    kind, html = got["content"]
    assert (got["title"], kind) == ("Release 2", "html")
    assert "Release" not in html and "<strong>you</strong>" in html and "<td><s>b</s></td>" in html


async def test_markdown_with_a_title_of_its_own(notes: Web, token: str) -> None:
    """The heading stays, because it is not the title."""
    for headers, media_type in (({}, "text/markdown; charset=utf-8"), ({"Markdown": "yes"}, FORM)):
        got = fields(await post(notes, token, b"# Heading\n\ntext", media_type, Title="T", **headers))
        assert (got["title"], "<h1>Heading</h1>" in got["content"][1]) == ("T", True)
    later = fields(await post(notes, token, b"intro\n\n## Second\n", "text/markdown"))
    assert (later["title"], "<h2>Second</h2>" in later["content"][1]) == ("Second", True)
    none = fields(await post(notes, token, b"only *text*", "text/markdown"))
    assert (none["title"], none["content"][1].strip()) == ("only…", "<p>only <em>text</em></p>")


async def test_markdown_is_sanitised(notes: Web, token: str) -> None:
    body = b"x <script>alert(1)</script>\n\n[a](javascript:alert(1)) <img src=x onerror=alert(1)>\n\n<b onclick=x>y</b>"
    html = fields(await post(notes, token, body, "text/markdown"))["content"][1]
    assert not any(word in html for word in ("<script", 'href="javascript', "onerror", "onclick"))
    assert "<b>y</b>" in html


async def test_markdown_has_a_limit(notes: Web, token: str) -> None:
    """Its time grows faster than its length."""
    got = await post(notes, token, b"a" * 65_537, "text/markdown")
    assert (got.status, "65536" in got.json["detail"]) == (413, True)


async def test_html_is_stored_as_it_is(notes: Web, token: str) -> None:
    got = fields(await post(notes, token, b"<p>One</p><p>Two</p>", "text/html", Title="T"))
    assert (got["title"], got["content"]) == ("T", ("html", "<p>One</p><p>Two</p>"))


# JSON.


@pytest.mark.needs("documents")
async def test_short_json(notes: Web, token: str) -> None:
    body = {"title": "T", "content": "text", "link": "https://x.example/", "tags": ["a", "b"]}
    assert fields(await post(notes, token, json.dumps(body).encode(), JSON)) == {
        "title": "T",
        "content": ("text", "text"),
        "link": "https://x.example/",
        "file": None,
        "tags": ["a", "b"],
    }
    html = fields(await post(notes, token, b'{"content_html": "<i>a</i>", "title": "T", "tags": "a, b"}', JSON))
    assert (html["content"], html["tags"]) == (("html", "<i>a</i>"), ["a", "b"])
    untitled = fields(await post(notes, token, b'{"content": "first\\nsecond"}', JSON))
    assert (untitled["title"], untitled["content"]) == ("first", ("text", "second"))


@pytest.mark.needs("documents")
@pytest.mark.parametrize("media_type", [JSON, "application/feed+json"])
async def test_item_of_a_json_feed(notes: Web, token: str, media_type: str) -> None:
    """All its members are in the JSON Feed that readers get."""
    item = {
        "id": "https://x.example/1",
        "url": "https://x.example/1",
        "title": "T",
        "content_html": "<p>c</p>",
        "date_published": "2026-01-02T03:04:05Z",
        "authors": [{"name": "Ann"}],
        "attachments": [{"url": "https://x.example/a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 7}],
        "_own": {"x": 1},
    }
    assert (await post(notes, token, json.dumps(item).encode(), media_type)).status == 201
    (read,) = (await notes.get("/feeds/notes.jsonfeed")).json["items"]
    assert {name: read[name] for name in item} == item


@pytest.mark.needs("documents")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"titel": "x"}', "'titel' is no member"),
        (b'{"content": "a", "content_text": "b"}', "are the same"),
        (b'{"tags": [1], "title": "x"}', "tags is an array"),
        (b'{"title": 5}', "title is no string"),
        (b'{"link": "javascript:x", "title": "a"}', "link"),
        (b'{"items": []}', "a whole feed"),
        (b"{}", "empty"),
        (b"[]", "JSON object"),
        (b'"text"', "JSON object"),
        (b'{"title": "a", "title": "b"}', "faulty"),
    ],
)
async def test_json_with_faults(notes: Web, token: str, body: bytes, reason: str) -> None:
    """[SF-114] Nothing is lost without a word."""
    got = await post(notes, token, body, JSON)
    assert (got.status, reason in got.json["detail"]) == (400, True), got.text


async def test_answer_is_json_unless_it_was_atom(notes: Web, token: str) -> None:
    got = await notes.ask("POST", "/entries/notes/", b"x", accept="*/*", Authorization=token, Content_Type=FORM)
    assert (got.status, got.json["title"]) == (201, "x")


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("text/html", b"<b>Hello</b>"),
        ("text/markdown", b"**Hello**"),
        (FORM, urlencode({"content_html": "<b>Hello</b>"}).encode()),
    ],
)
async def test_html_is_read_in_a_thread(
    notes: Web, token: str, monkeypatch: pytest.MonkeyPatch, media_type: str, body: bytes
) -> None:
    """The title of hostile HTML takes 0.3 s. The service answers other requests meanwhile."""
    threads: list[threading.Thread] = []

    def entry_of(post: Post) -> Element:
        threads.append(threading.current_thread())
        return original(post)

    original = posts.entry_of
    monkeypatch.setattr(posts, "entry_of", entry_of)
    assert fields(await post(notes, token, body, media_type))["title"] == "Hello"
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
