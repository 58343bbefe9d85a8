"""The editor: writing, previews, edits with somebody else being faster, deletions, replies, and hostile text in it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

import pytest
import pytest_asyncio
from lxml import etree, html
from yarl import URL

from smartfeeds.core.token import TokenScope
from support.bearer import bearer
from support.browsing import SignedIn, sign_in
from support.chat import body_of, write
from support.component import ALICE, BOB, CAROL, DOMAIN, bare, entry
from support.web import Got, Web, WebStarter

pytestmark = pytest.mark.shared

ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'"
OF = ("reply", "of")
XHTML = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><title>Old</title>'
    '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>One <b>two</b>.</p></div></content>'
    '<category term="a" scheme="urn:s" label="A"/><category term="b"/>'
    '<link rel="enclosure" href="https://x.example/f.ogg" type="audio/ogg" length="9"/>'
    '<x xmlns="urn:other">kept</x></entry>'
)


@pytest_asyncio.fixture(loop_scope="module")
async def alice(web: Web) -> SignedIn:
    """The browser of Alice, who owns the feed notes."""
    await web.component.create(ALICE, "notes", title="Our notes")
    return await sign_in(web, ALICE)


def form(**fields: str) -> str:
    return "&".join(f"{name}={quote(text, safe='')}" for name, text in fields.items())


async def stored(browser: SignedIn, item_id: str) -> etree._Element:
    got = await browser.get(f"/entries/notes/{item_id}", "application/atom+xml")
    assert got.status == 200
    return etree.fromstring(got.body)


async def only_entry(browser: SignedIn) -> etree._Element:
    """The entry of a feed with one entry, as it is stored."""
    page = html.fromstring((await browser.get("/feeds/notes/", "text/html")).text)
    (item_id,) = page.xpath("//article/@data-id")
    return await stored(browser, item_id)


def tag_of(page: str) -> str:
    match = re.search(r'name="tag" value="([^"]*)"', page)
    assert match is not None
    return match[1]


async def test_entry_is_written(alice: SignedIn) -> None:
    page = await alice.get("/write/notes/", "text/html")
    assert (page.status, page.header("Cache-Control")) == (200, "no-store")
    assert "Our notes" in page.text
    fields = form(title="A title", text="Line one\r\nline two", kind="text", link="https://x.example/a", tags="b, a ,b")
    got = await alice.post("/write/notes/", f"{fields}&action=publish")
    assert (got.status, got.header("Location")) == (303, "/feeds/notes/")
    root = await only_entry(alice)
    assert root.findtext(f"{ATOM}title") == "A title"
    assert root.findtext(f"{ATOM}content") == "Line one\nline two"
    assert [one.get("term") for one in root.findall(f"{ATOM}category")] == ["b", "a"]
    links = {one.get("rel"): one.get("href") for one in root.findall(f"{ATOM}link")}
    assert links["alternate"] == "https://x.example/a"
    assert root.findtext(f"{ATOM}author/{ATOM}uri") == "xmpp:alice@example.org"


async def test_title_is_the_first_line_if_there_is_none(alice: SignedIn) -> None:
    await alice.post("/write/notes/", form(title="", text="First line\nsecond", action="publish"))
    assert "First line" in (await alice.get("/feeds/notes/", "text/html")).text
    got = await alice.post("/write/notes/", form(title=" ", text=" ", action="publish"))
    assert (got.status, "the entry is empty" in got.text) == (400, True)


async def test_text_of_one_line_is_the_title_alone(alice: SignedIn) -> None:
    """As in a post, whose title is made in the same way."""
    await alice.post("/write/notes/", form(title="", text=" We are open\r\n", action="publish"))
    root = await only_entry(alice)
    assert (root.findtext(f"{ATOM}title"), root.find(f"{ATOM}content")) == ("We are open", None)


async def test_preview_publishes_nothing_and_is_sanitised(alice: SignedIn) -> None:
    fields = form(title="T", text=f"<b>bold</b><script>alert(1)</script>{EVIL}", kind="html", action="preview")
    got = await alice.post("/write/notes/", fields)
    assert got.status == 200
    page = html.fromstring(got.text)
    (preview,) = page.xpath("//article[contains(@class, 'preview')]/div")
    assert preview.xpath(".//b | .//strong") and not preview.xpath(".//script | .//*[@onerror]")
    assert page.xpath("//textarea")[0].text.strip().startswith("<b>bold</b>")
    assert (await alice.get("/feeds/notes/?timeout=0")).json["count"] == 0


async def test_bookmark_opens_the_form_with_a_page(alice: SignedIn) -> None:
    """Its title and its address, which stay text; nothing is published by that."""
    page = html.fromstring(
        (await alice.get(f"/write/notes/?link=https://x.example/a&title={quote(EVIL)}", "text/html")).text
    )
    assert page.xpath("//input[@name='link']/@value") == ["https://x.example/a"]
    assert page.xpath("//input[@name='title']/@value") == [EVIL]
    (bookmark,) = page.xpath("//main//a[text()='Write in Our notes']/@href")
    assert bookmark.startswith("javascript:location.href%3D%22http")
    assert (await alice.get("/feeds/notes/?timeout=0")).json["count"] == 0


@pytest.mark.parametrize("field", ["title", "text", "kind", "link", "tags", "tag", "reply", "of"])
async def test_hostile_text_in_a_field_stays_text(alice: SignedIn, field: str) -> None:
    fields = {"title": "T", "text": "x", "action": "preview", field: EVIL}
    got = await alice.post("/write/notes/", form(**fields))
    assert "<script>alert" not in got.text and "onerror=alert(1)>" not in got.text.replace("&gt;", "")
    assert "script-src 'self'" in got.header("Content-Security-Policy") or got.status == 404


@pytest.mark.parametrize("link", ["javascript:alert(1)", "no address", "//x.example/"])
async def test_link_that_is_no_web_address_is_told_and_nothing_is_lost(alice: SignedIn, link: str) -> None:
    got = await alice.post("/write/notes/", form(title="My title", text="My text", link=link, action="publish"))
    assert (got.status, "is no web address" in got.text) == (400, True)
    assert "My title" in got.text and "My text" in got.text


async def test_edit_changes_what_changed_and_keeps_the_rest(alice: SignedIn) -> None:
    await alice.web.component.publish(ALICE, "notes", "a", XHTML)
    page = await alice.get("/write/notes/a", "text/html")
    area = html.fromstring(page.text).xpath("//textarea")[0].text.strip()
    (kept,) = kept_files(page.text)
    text = area.replace("\n", "\r\n")
    fields = form(title="New", text=text, kind="html", tags="b, a, c", tag=tag_of(page.text), kept=kept)
    assert (await alice.post("/write/notes/a", f"{fields}&action=publish")).status == 303
    root = await stored(alice, "a")
    assert root.findtext(f"{ATOM}title") == "New"
    content = root.find(f"{ATOM}content")
    assert content is not None and content.get("type") == "xhtml"
    assert {one.get("term"): one.get("label") for one in root.findall(f"{ATOM}category")} == {
        "a": "A",
        "b": None,
        "c": None,
    }
    assert root.find("{urn:other}x") is not None
    assert any(one.get("rel") == "enclosure" for one in root.findall(f"{ATOM}link"))


async def send_parts(
    alice: SignedIn, path: str, files: dict[str, bytes], kept: Sequence[str] = (), **fields: str
) -> Got:
    """The form as a browser sends it: its token first, the files last."""
    parts = [("csrf", alice.csrf), *fields.items(), *(("kept", text) for text in kept)]
    texts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode() for name, text in parts]
    for name, data in files.items():
        head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        texts.append(head.encode() + data + b"\r\n")
    headers = {
        "Cookie": alice.cookie,
        "Sec_Fetch_Site": "same-origin",
        "Content_Type": "multipart/form-data; boundary=b",
    }
    return await alice.web.ask("POST", path, b"".join(texts) + b"--b--\r\n", "text/html", **headers)


def kept_files(page: str) -> list[str]:
    return [str(value) for value in html.fromstring(page).xpath("//input[@name='kept']/@value")]


def files_of(root: etree._Element) -> list[tuple[str | None, ...]]:
    links = root.findall(f"{ATOM}link[@rel='enclosure']")
    return [tuple(link.get(name) for name in ("title", "type", "length")) for link in links]


async def test_files_are_enclosures_of_the_entry(alice: SignedIn) -> None:
    """A form without a chosen file sends an empty part without a name."""
    page = html.fromstring((await alice.get("/write/notes/", "text/html")).text)
    (sheet,) = page.xpath("//form[@class='sheet fields']")
    assert sheet.get("enctype") == "multipart/form-data"
    names = sheet.xpath(".//input/@name | .//textarea/@name | .//select/@name")
    assert (names[0], names[-1]) == ("csrf", "file")
    got = await send_parts(alice, "/write/notes/", {"a.jpg": b"jpeg", "b.pdf": b"pdf"}, title="T", action="publish")
    assert (got.status, got.header("Location")) == (303, "/feeds/notes/")
    root = await only_entry(alice)
    assert files_of(root) == [("a.jpg", "image/jpeg", "4"), ("b.pdf", "application/pdf", "3")]
    address = root.find(f"{ATOM}link[@rel='enclosure']").get("href", "")
    assert (await alice.get(URL(address).raw_path)).body == b"jpeg"
    got = await send_parts(alice, "/write/notes/", {"": b""}, title=" ", text=" ", action="publish")
    assert (got.status, "the entry is empty" in got.text) == (400, True)


async def test_entry_of_a_file_alone_has_its_name_as_title(alice: SignedIn) -> None:
    assert (await send_parts(alice, "/write/notes/", {"a.jpg": b"jpeg"}, action="publish")).status == 303
    assert (await only_entry(alice)).findtext(f"{ATOM}title") == "a.jpg"


async def test_files_of_a_preview_are_published_later(alice: SignedIn) -> None:
    """A browser does not send a file again, so the form lists the files that were uploaded."""
    got = await send_parts(alice, "/write/notes/", {"a.jpg": b"jpeg"}, title="T", text="x", action="preview")
    assert got.status == 200
    kept = kept_files(got.text)
    got = await send_parts(alice, "/write/notes/", {"": b""}, kept, title="T", text="x", action="publish")
    assert got.status == 303
    assert files_of(await only_entry(alice)) == [("a.jpg", "image/jpeg", "4")]


async def test_preview_shows_files_tags_and_the_link(alice: SignedIn) -> None:
    """All that readers will see: an uploaded picture as a picture, other files by name, and tags."""
    files = {"sea.jpg": b"\xff\xd8\xff jpeg", "tide.pdf": b"pdf"}
    fields = {"title": "T", "text": "x", "tags": "harbour, <b>tide</b>", "link": "https://x.example/a"}
    got = await send_parts(alice, "/write/notes/", files, **fields, action="preview")
    (preview,) = html.fromstring(got.text).xpath("//article[contains(@class, 'preview')]")
    (path,) = preview.xpath(".//figure/img[@alt='sea.jpg']/@src")
    assert (await alice.get(path)).body == files["sea.jpg"], "readers get it before the entry is published"
    assert preview.xpath(".//ul[@class='files']//a/text()") == ["sea.jpg", "tide.pdf"]
    assert preview.xpath(".//p[@class='tags']/span/text()") == ["harbour", "<b>tide</b>"]
    assert preview.xpath("h2/a/@href") == ["https://x.example/a"]
    got = await alice.post("/write/notes/", form(**fields | {"link": "javascript:alert(1)"}, action="preview"))
    assert "javascript:alert" not in "".join(html.fromstring(got.text).xpath("//a/@href"))


async def test_edit_keeps_removes_and_adds_files(alice: SignedIn) -> None:
    more = '<link rel="enclosure" href="sub/g.pdf" type="application/pdf" xml:base="https://x.example/" xml:lang="de"/>'
    await alice.web.component.publish(ALICE, "notes", "a", XHTML.replace("<x ", f"{more}<x "))
    page = await alice.get("/write/notes/a", "text/html")
    both = kept_files(page.text)
    fields = {"title": "T", "text": "x", "kind": "text", "action": "publish"}
    got = await send_parts(alice, "/write/notes/a", {"": b""}, both, **fields, tag=tag_of(page.text))
    assert (got.status, len(files_of(await stored(alice, "a")))) == (303, 2)
    page = await alice.get("/write/notes/a", "text/html")
    got = await send_parts(alice, "/write/notes/a", {"h.png": b"p"}, both[1:], **fields, tag=tag_of(page.text))
    assert got.status == 303
    root = await stored(alice, "a")
    assert files_of(root) == [(None, "application/pdf", None), ("h.png", "image/png", "1")]
    assert root.find(f"{ATOM}link[@rel='enclosure']").get("{http://www.w3.org/XML/1998/namespace}lang") == "de"


async def test_files_of_both_versions_are_kept_if_somebody_else_was_faster(alice: SignedIn) -> None:
    component = alice.web.component
    await component.publish(ALICE, "notes", "a", entry("a"))
    tag = tag_of((await alice.get("/write/notes/a", "text/html")).text)
    await component.publish(ALICE, "notes", "a", XHTML)
    fields = {"title": "Mine", "text": "x", "kind": "text", "action": "publish"}
    got = await send_parts(alice, "/write/notes/a", {"h.png": b"p"}, **fields, tag=tag)
    assert got.status == 409
    got = await send_parts(alice, "/write/notes/a", {"": b""}, kept_files(got.text), **fields, tag=tag_of(got.text))
    assert got.status == 303
    assert files_of(await stored(alice, "a")) == [(None, "audio/ogg", "9"), ("h.png", "image/png", "1")]


@pytest.mark.parametrize(("data", "status"), [(b"", 400), (b"x" * 300_000, 413)])
async def test_text_is_kept_if_a_file_is_not_taken(start_web: WebStarter, data: bytes, status: int) -> None:
    web = await start_web(http={"upload_bytes": 100_000})
    await web.component.create(ALICE, "notes")
    alice = await sign_in(web, ALICE)
    got = await send_parts(alice, "/write/notes/", {"a.jpg": data}, title="My title", text="My text", action="publish")
    page = html.fromstring(got.text)
    assert (got.status, page.xpath("//textarea")[0].text.strip()) == (status, "My text")
    assert "file" in page.xpath("string(//p[@class='failure'])")
    assert got.header("Access-Control-Allow-Origin") == ""
    assert (await alice.get("/feeds/notes/?timeout=0")).json["count"] == 0


@pytest.mark.parametrize("setting", [0, 1_000])
async def test_form_has_a_field_for_files_if_the_service_takes_them(start_web: WebStarter, setting: int) -> None:
    web = await start_web(http={"upload_bytes": setting})
    await web.component.create(ALICE, "notes")
    page = await (await sign_in(web, ALICE)).get("/write/notes/", "text/html")
    assert ('type="file"' in page.text) is bool(setting)


async def test_hostile_file_address_is_told(alice: SignedIn) -> None:
    got = await alice.post("/write/notes/", form(title="T", kept="href=file%3A%2F%2F%2Fetc%2Fpasswd", action="publish"))
    assert (got.status, "it begins with https://" in got.text) == (400, True)


async def only_id(alice: SignedIn) -> str:
    (item_id,) = html.fromstring((await alice.get("/feeds/notes/", "text/html")).text).xpath("//article/@data-id")
    return str(item_id)


async def test_markdown_opens_as_markdown(alice: SignedIn) -> None:
    text = "# Our shop\r\n\r\nCome **in**, [all](https://x.example/)"
    await alice.post("/write/notes/", form(title="", text=text, kind="markdown", action="publish"))
    item_id = await only_id(alice)
    page = await alice.get(f"/write/notes/{item_id}", "text/html")
    form_shown = html.fromstring(page.text)
    assert form_shown.xpath("//option[@selected]/@value") == ["markdown"]
    assert form_shown.xpath("//input[@name='title']/@value") == ["Our shop"]
    assert form_shown.xpath("//textarea")[0].text.strip() == "Come **in**, [all](https://x.example/)"
    changed = form(title="Our shop", text="Come *in*", kind="markdown", tag=tag_of(page.text), action="publish")
    assert (await alice.post(f"/write/notes/{item_id}", changed)).status == 303
    root = await stored(alice, item_id)
    assert str(root.findtext(f"{ATOM}content")).strip() == "<p>Come <em>in</em></p>"
    assert root.findtext("{http://source.scripting.com/}markdown") == "Come *in*"
    assert len(root.findall("{http://source.scripting.com/}markdown")) == 1


async def test_markdown_by_a_program_opens_as_markdown(alice: SignedIn) -> None:
    token = await bearer(alice.web, ALICE, TokenScope.PUBLISH)
    await alice.web.ask("PUT", "/entries/notes/a", b"# T\n\n*x*", Authorization=token, Content_Type="text/markdown")
    page = html.fromstring((await alice.get("/write/notes/a", "text/html")).text)
    assert page.xpath("//option[@selected]/@value") == ["markdown"]
    assert page.xpath("//textarea")[0].text.strip() == "*x*"


@pytest.mark.parametrize("way", ["editor", "token"])
async def test_markdown_that_does_not_fit_is_not_stored(alice: SignedIn, way: str) -> None:
    """A text that fits without it is published, and opens as HTML."""
    await alice.web.component.configure(ALICE, "notes", max_payload_size="4096")
    text = "*a* " + "word " * 450
    if way == "editor":
        got = await alice.post("/write/notes/", form(title="T", text=text, kind="markdown", action="publish"))
        assert got.status == 303
    else:
        token = await bearer(alice.web, ALICE, TokenScope.PUBLISH)
        headers = {"Authorization": token, "Content_Type": "text/markdown"}
        assert (await alice.web.ask("POST", "/entries/notes/", text.encode(), **headers)).status == 201
    item_id = await only_id(alice)
    assert b"scripting" not in etree.tostring(await stored(alice, item_id))
    page = html.fromstring((await alice.get(f"/write/notes/{item_id}", "text/html")).text)
    assert page.xpath("//option[@selected]/@value") == ["html"]


@pytest.mark.parametrize("markdown", ["*y*", ""])
async def test_markdown_that_does_not_make_the_html_is_not_shown(alice: SignedIn, markdown: str) -> None:
    """Another client has changed the HTML and left the Markdown, or has published any text as Markdown."""
    payload = (
        f'<entry xmlns="{ATOM[1:-1]}"><title>T</title><content type="html">&lt;p>x&lt;/p></content>'
        f'<m:markdown xmlns:m="http://source.scripting.com/">{markdown}</m:markdown></entry>'
    )
    await alice.web.component.publish(ALICE, "notes", "a", payload)
    page = html.fromstring((await alice.get("/write/notes/a", "text/html")).text)
    assert page.xpath("//option[@selected]/@value") == ["html"]
    assert page.xpath("//textarea")[0].text.strip() == "<p>x</p>"


async def test_markdown_goes_with_the_text_that_it_made(alice: SignedIn) -> None:
    await alice.post("/write/notes/", form(title="T", text="*x*", kind="markdown", action="publish"))
    item_id = await only_id(alice)
    page = await alice.get(f"/write/notes/{item_id}", "text/html")
    plain = form(title="T", text="plain", kind="text", tag=tag_of(page.text), action="publish")
    assert (await alice.post(f"/write/notes/{item_id}", plain)).status == 303
    assert b"scripting" not in etree.tostring(await stored(alice, item_id))


async def test_other_version_is_compared_as_markdown(alice: SignedIn) -> None:
    await alice.post("/write/notes/", form(title="T", text="*x*", kind="markdown", action="publish"))
    item_id = await only_id(alice)
    tag = tag_of((await alice.get(f"/write/notes/{item_id}", "text/html")).text)
    fields = {"title": "T", "kind": "markdown", "tag": tag, "action": "publish"}
    assert (await alice.post(f"/write/notes/{item_id}", form(text="*theirs*", **fields))).status == 303
    got = await alice.post(f"/write/notes/{item_id}", form(text="*mine*", **fields))
    assert (got.status, [one.text_content() for one in html.fromstring(got.text).xpath("//tbody//td[1]")]) == (
        409,
        ["*theirs*"],
    )


async def test_both_versions_are_shown_if_somebody_else_was_faster(alice: SignedIn) -> None:
    component = alice.web.component
    await component.publish(ALICE, "notes", "a", entry("a"))
    tag = tag_of((await alice.get("/write/notes/a", "text/html")).text)
    their = '<entry xmlns="http://www.w3.org/2005/Atom"><title>Theirs</title><content>They wrote this</content></entry>'
    await component.publish(ALICE, "notes", "a", their)
    fields = {"title": "Mine", "text": "I wrote this", "action": "publish"}
    got = await alice.post("/write/notes/a", form(**fields, tag=tag))
    assert got.status == 409
    page = html.fromstring(got.text)
    assert page.xpath("//textarea")[0].text.strip() == "I wrote this"
    assert [one.text_content() for one in page.xpath("//tbody//td[1]")] == ["Theirs", "They wrote this"]
    assert "removed: They" in page.xpath("//tbody//td[2]")[1].text_content()
    assert "added: I" in page.xpath("//tbody//td[2]")[1].text_content()
    assert (await stored(alice, "a")).findtext(f"{ATOM}title") == "Theirs"
    assert (await alice.post("/write/notes/a", form(**fields, tag=tag_of(got.text)))).status == 303
    assert (await stored(alice, "a")).findtext(f"{ATOM}title") == "Mine"


async def test_text_is_kept_if_somebody_else_deleted_the_entry(alice: SignedIn) -> None:
    component = alice.web.component
    await component.publish(ALICE, "notes", "a", entry("a"))
    tag = tag_of((await alice.get("/write/notes/a", "text/html")).text)
    await component.retract(ALICE, "notes", "a")
    fields = {"title": "Mine", "text": "I wrote this", "action": "publish"}
    got = await alice.post("/write/notes/a", form(**fields, tag=tag))
    assert (got.status, "deleted this entry" in got.text, "I wrote this" in got.text) == (409, True, True)
    assert (await alice.post("/write/notes/a", form(**fields, tag=tag_of(got.text)))).status == 303
    assert (await stored(alice, "a")).findtext(f"{ATOM}title") == "Mine"


async def test_entry_is_deleted_after_a_confirmation(alice: SignedIn) -> None:
    component = alice.web.component
    await component.publish(ALICE, "notes", "a", entry("a"))
    page = await alice.get("/delete/notes/a", "text/html")
    assert page.status == 200
    await component.publish(ALICE, "notes", "a", entry("a2"))
    got = await alice.post("/delete/notes/a", form(tag=tag_of(page.text)))
    assert (got.status, "was changed after" in got.text) == (409, True)
    assert (await stored(alice, "a")) is not None
    assert (await alice.post("/delete/notes/a", form(tag=tag_of(got.text)))).status == 303
    assert (await alice.get("/entries/notes/a")).status == 410


async def test_reply_refers_to_its_entry(alice: SignedIn) -> None:
    await alice.web.component.publish(ALICE, "notes", "a", entry("a"))
    page = await alice.get("/write/notes/?reply=a", "text/html")
    assert 'name="reply" value="a"' in page.text
    assert (await alice.post("/write/notes/", form(title="Answer", reply="a", action="publish"))).status == 303
    atom_id = (await stored(alice, "a")).findtext(f"{ATOM}id") or ""
    answers = await alice.get(f"/feeds/notes/?in-reply-to={quote(atom_id, safe='')}&timeout=0")
    assert [one["object"]["displayName"] for one in answers.json["items"]] == ["Answer"]


COMMENTED = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><title>Bread</title>'
    f'<link rel="replies" href="xmpp:{DOMAIN}?;node=notes%2Fcomments"/></entry>'
)


async def test_reply_goes_into_the_comments_of_the_entry(alice: SignedIn) -> None:
    """The page to reply leads to the feed that the link `replies` names, where the answer is published (XEP-0277)."""
    await alice.web.component.create(ALICE, "notes/comments", title="Comments")
    await alice.web.component.publish(ALICE, "notes", "a", COMMENTED)
    got = await alice.get("/write/notes/?reply=a", "text/html")
    assert (got.status, got.header("Location")) == (303, "/write/notes/comments/?reply=a&of=notes")
    page = html.fromstring((await alice.get(got.header("Location"), "text/html")).text)
    assert "Your entry answers “Bread”." in page.text_content()
    fields = form(
        title="Answer", action="publish", **{name: page.xpath(f"//input[@name='{name}']/@value")[0] for name in OF}
    )
    got = await alice.post(page.xpath("//form[@class='sheet fields']/@action")[0], fields)
    # Back to the entry, under which the answer is.
    assert (got.status, got.header("Location")) == (303, "/entries/notes/a#replies")
    atom_id = (await stored(alice, "a")).findtext(f"{ATOM}id") or ""
    answers = await alice.get(f"/feeds/notes/comments/?in-reply-to={quote(atom_id, safe='')}&timeout=0")
    assert [one["object"]["displayName"] for one in answers.json["items"]] == ["Answer"]
    assert (await alice.get("/feeds/notes/?timeout=0")).json["count"] == 1


async def test_reply_to_an_entry_whose_comments_do_not_exist_stays_in_the_feed(alice: SignedIn) -> None:
    await alice.web.component.publish(ALICE, "notes", "a", COMMENTED)
    assert (await alice.get("/write/notes/?reply=a", "text/html")).status == 200


async def test_reply_goes_into_no_feed_of_somebody_else(alice: SignedIn) -> None:
    """The author of an entry chooses its links, and the reader's rights hold there. As in chats."""
    await alice.web.component.create(BOB, "notes/comments", publish_model="open")
    await alice.web.component.publish(ALICE, "notes", "a", COMMENTED)
    assert (await alice.get("/write/notes/?reply=a", "text/html")).status == 200


async def test_reply_to_an_entry_whose_comments_are_hidden_stays_in_the_feed(
    alice: SignedIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    component = alice.web.component
    service = component.app.service
    monkeypatch.setattr(service, "policy", replace(service.policy, hides_closed=True))
    node = "urn:xmpp:microblog:0:comments/a"
    await component.create(BOB, node, access_model="whitelist")
    await component.publish(ALICE, "notes", "a", COMMENTED.replace("notes%2Fcomments", node.replace("/", "%2F")))
    assert (await alice.get("/write/notes/?reply=a", "text/html")).status == 200


async def test_reply_reads_only_feeds_of_the_token(alice: SignedIn) -> None:
    """A token for the comments alone opens no entry of another feed, not even its title."""
    web = alice.web
    await web.component.create(ALICE, "notes/comments")
    await web.component.publish(ALICE, "notes", "a", COMMENTED)
    commenter = await sign_in(web, ALICE, TokenScope.PUBLISH, "notes/comments")
    got = await commenter.get("/write/notes/comments/?reply=a&of=notes", "text/html")
    assert (got.status, "Bread" in got.text) == (403, False)
    got = await commenter.post("/write/notes/comments/", form(title="T", reply="a", of="notes", action="publish"))
    assert got.status == 403
    assert (await alice.get("/feeds/notes/comments/?timeout=0")).json["count"] == 0


async def test_links_are_shown_to_those_who_may_use_them(alice: SignedIn) -> None:
    component, web = alice.web.component, alice.web
    await component.configure(ALICE, "notes", publish_model="open")
    await component.publish(BOB, "notes", "bobs", entry("bobs"))
    await component.publish(ALICE, "notes", "alices", entry("alices"))
    await component.affiliate(ALICE, "notes", CAROL, "outcast")
    bob, reader = await sign_in(web, BOB), await sign_in(web, ALICE, TokenScope.READ)

    async def links(browser: SignedIn) -> set[str]:
        got = await browser.get("/feeds/notes/", "text/html")
        return set(re.findall(r'href="(/(?:write|delete)/[^"]*)"', got.text))

    everything = {f"/{folder}/notes/{item}" for folder in ("write", "delete") for item in ("alices", "bobs")}
    writing = {"/write/notes/", "/write/notes/?reply=alices", "/write/notes/?reply=bobs"}
    assert await links(alice) == everything | writing
    assert await links(bob) == {"/write/notes/bobs", "/delete/notes/bobs"} | writing
    assert await links(reader) == set()
    anonymous = await web.get("/feeds/notes/", "text/html")
    assert "/write/" not in anonymous.text and "/delete/" not in anonymous.text
    await component.configure(ALICE, "notes", publish_model="publishers")
    assert await links(bob) == {"/delete/notes/bobs"}


async def test_page_to_write_leads_anonymous_readers_to_the_sign_in(alice: SignedIn) -> None:
    got = await alice.web.get("/write/notes/", "text/html", Sec_Fetch_Mode="navigate")
    assert (got.status, 'href="/login"' in got.text) == (401, True)


@pytest.mark.parametrize("path", ["/write/notes/a", "/delete/notes/a"])
async def test_form_without_its_token_changes_nothing(alice: SignedIn, path: str) -> None:
    await alice.web.component.publish(ALICE, "notes", "a", entry("a"))
    tag = tag_of((await alice.get(path, "text/html")).text)
    headers = {
        "Cookie": alice.cookie,
        "Sec_Fetch_Site": "same-origin",
        "Content_Type": "application/x-www-form-urlencoded",
    }
    got = await alice.web.ask("POST", path, form(title="x", tag=tag, action="publish").encode(), **headers)
    assert got.status == 403
    assert (await stored(alice, "a")).findtext(f"{ATOM}title") != "x"


async def test_user_without_the_right_changes_nothing(alice: SignedIn) -> None:
    await alice.web.component.publish(ALICE, "notes", "a", entry("a"))
    bob = await sign_in(alice.web, BOB)
    for path in ("/write/notes/", "/write/notes/a", "/delete/notes/a"):
        assert (await bob.get(path, "text/html")).status == 403
        assert (await bob.post(path, form(title="x", tag="1.1", action="publish"))).status in (403, 409)
    assert (await alice.get("/feeds/notes/?timeout=0")).json["count"] == 1


async def test_markdown_becomes_sanitised_html(alice: SignedIn) -> None:
    """The heading becomes the title; the preview shows what is published, and the form keeps the Markdown."""
    text = "# A *title*\n\nSome **bold** text<script>alert(1)</script> and [a link](javascript:alert(1))"
    got = await alice.post("/write/notes/", form(text=text, kind="markdown", action="preview"))
    page = html.fromstring(got.text)
    assert page.xpath("string(//article/h2)") == "A title"
    assert page.xpath("string(//article//strong)") == "bold"
    assert page.xpath("//textarea")[0].text.strip() == text
    assert (await alice.post("/write/notes/", form(text=text, kind="markdown", action="publish"))).status == 303
    root = await only_entry(alice)
    content = root.find(f"{ATOM}content")
    assert root.findtext(f"{ATOM}title") == "A title"
    assert content is not None and content.get("type") == "html"
    assert "<strong>bold</strong>" in (content.text or "")
    assert "<script" not in (content.text or "") and "<a" not in (content.text or "")


@pytest.mark.needs("bot")
@pytest.mark.parametrize("way", ["editor", "micropub", "atom"])
async def test_author_hears_of_an_answer_in_chat(alice: SignedIn, way: str) -> None:
    """From the editor, and from other editors, which name the page of the entry."""
    web, component = alice.web, alice.web.component
    await component.configure(ALICE, "notes", publish_model="open")
    await write(component, ALICE, "post notes What now?", id="q1")
    (item_id,) = await component.item_ids(ALICE, "notes")
    if way == "editor":
        fields = form(text="This", kind="text", reply=item_id, of="notes", action="publish")
        assert (await (await sign_in(web, BOB)).post("/write/notes/", fields)).status == 303
    elif way == "atom":
        token = await bearer(web, BOB, TokenScope.PUBLISH)
        address = f"{web.origin}/entries/notes/{item_id}"
        thread = "xmlns:thr='http://purl.org/syndication/thread/1.0'"
        reference = f"<thr:in-reply-to {thread} ref='{address}'/>"
        entry = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>This</title>{reference}</entry>"
        headers = {"Authorization": token, "Content_Type": "application/atom+xml"}
        assert (await web.ask("POST", "/entries/notes/", entry.encode(), **headers)).status == 201
    else:
        token = await bearer(web, BOB, TokenScope.PUBLISH)
        fields = form(h="entry", content="This", **{"in-reply-to": f"{web.origin}/entries/notes/{item_id}"})
        headers = {"Authorization": token, "Content_Type": "application/x-www-form-urlencoded"}
        assert (await web.ask("POST", "/micropub/notes", fields.encode(), **headers)).status == 201
    (message,) = await component.events(bare(ALICE))
    assert body_of(message).split("\n")[:2] == ["An answer to your entry “What now?”:", "This"]
