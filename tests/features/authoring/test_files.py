"""Files as enclosures: uploaded in every way, served safely, and gone when no item refers to them."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from structlog.testing import capture_logs
from yarl import URL

from smartfeeds.core.token import TokenScope
from smartfeeds.features.authoring import uploads
from smartfeeds.features.authoring.requests import GRACE_US
from smartfeeds.features.authoring.routes import AuthoringHandlers
from smartfeeds.features.authoring.setup import remove_unused_files
from smartfeeds.http import server
from smartfeeds.store.file_folder import LOCK
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE, BOB
from support.raw import connected
from support.waiting import until
from support.web import Got, Web

ATOM = "application/atom+xml"
MULTIPART = "multipart/form-data; boundary=x"
A = "{http://www.w3.org/2005/Atom}"
PHOTO = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 400


def names(web: Web) -> list[str]:
    """The files that are on the disk."""
    folder = web.component.app.files.path
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != LOCK)


async def upload(web: Web, token: str, data: bytes = PHOTO, item_id: str = "photo.jpg", **headers: str) -> Got:
    """As `curl -T photo.jpg .../entries/notes/` sends it."""
    return await web.ask("PUT", f"/entries/notes/{item_id}", data, accept=ATOM, Authorization=token, **headers)


def enclosures(got: Got) -> list[tuple[str, ...]]:
    """Path, media type, name and size of the files of an item."""
    assert got.status in (200, 201), got.text
    links = etree.fromstring(got.body).findall(f"{A}link[@rel='enclosure']")
    return [
        (URL(link.get("href", "")).raw_path, *(link.get(name, "") for name in ("type", "title", "length")))
        for link in links
    ]


async def test_file_is_the_enclosure_of_an_entry(notes: Web, token: str) -> None:
    """Without a media type, as `curl -T` sends it: the end of the address has the name."""
    got = await upload(notes, token, Content_Type="")
    digest = hashlib.sha256(PHOTO).hexdigest()
    path = f"/files/notes/{digest[:32]}.jpg"
    assert enclosures(got) == [(path, "image/jpeg", "photo.jpg", str(len(PHOTO)))]
    assert etree.fromstring(got.body).findtext(f"{A}title") == "photo.jpg"
    assert names(notes) == [digest]
    file = await notes.get(path)
    assert (file.status, file.body == PHOTO) == (200, True)
    assert {name: file.header(name) for name in ("Content-Type", "X-Content-Type-Options", "Accept-Ranges")} == {
        "Content-Type": "image/jpeg",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
    }
    assert "sandbox" in file.header("Content-Security-Policy")
    assert file.header("Content-Disposition") == "inline; filename=\"photo.jpg\"; filename*=UTF-8''photo.jpg"
    assert file.header("Access-Control-Allow-Origin") == "*"


async def test_file_with_a_name_a_title_and_a_text(notes: Web, token: str) -> None:
    """[SF-110] POST with the headers of ntfy; the name makes a file even of a text."""
    got = await notes.ask(
        "POST",
        "/entries/notes/?message=a+text",
        b"a,b",
        accept=ATOM,
        Authorization=token,
        Content_Type="application/x-www-form-urlencoded",
        Filename="../../täble.csv",
        Title="Table",
    )
    ((_, kind, name, size),) = enclosures(got)
    assert (kind, name, size) == ("text/csv", "täble.csv", "3")
    root = etree.fromstring(got.body)
    assert (root.findtext(f"{A}title"), root.findtext(f"{A}content")) == ("Table", "a text")


@pytest.mark.parametrize(
    ("media_type", "disposition"),
    [
        ("image/svg+xml", "attachment"),
        ("text/html", "attachment"),
        ("application/pdf", "attachment"),
        ("audio/mpeg", "inline"),
    ],
)
async def test_only_harmless_types_are_shown(notes: Web, token: str, media_type: str, disposition: str) -> None:
    """Everything else is saved, as bytes without a type."""
    got = await upload(notes, token, b"<script>", Content_Type=media_type, Filename="x")
    ((path, kind, *_),) = enclosures(got)
    file = await notes.get(path)
    assert kind == media_type
    assert file.header("Content-Disposition").partition(";")[0] == disposition
    assert file.header("Content-Type") == (media_type if disposition == "inline" else "application/octet-stream")


async def test_parts_of_a_file(notes: Web, token: str) -> None:
    """RFC 9110 14."""
    ((path, *_),) = enclosures(await upload(notes, token))
    size = len(PHOTO)
    tag = (await notes.get(path)).header("ETag")
    for text, start, end in (("0-3", 0, 4), ("5-", 5, size), ("-7", size - 7, size), (f"9-{size * 2}", 9, size)):
        got = await notes.get(path, Range=f"bytes={text}", If_Range=tag)
        assert (got.status, got.body) == (206, PHOTO[start:end])
        assert got.header("Content-Range") == f"bytes {start}-{end - 1}/{size}"
    for whole in ({"Range": "bytes=0-1,3-4"}, {"Range": "lines=1"}, {"Range": "bytes=0-1", "If_Range": '"other"'}):
        assert (await notes.get(path, **whole)).status == 200
    for text in (f"{size}-", "-0"):
        beyond = await notes.get(path, Range=f"bytes={text}")
        assert (beyond.status, beyond.header("Content-Range")) == (416, f"bytes */{size}"), text
    head = await notes.ask("HEAD", path)
    assert (head.status, head.header("Content-Length"), head.body) == (200, str(size), b"")
    assert (await notes.get(path, If_None_Match=tag)).status == 304


async def test_files_of_closed_feeds_stay_closed(notes: Web) -> None:
    """[SF-111] The same answers as for the items of the feed."""
    await notes.component.create(ALICE, "closed", access_model="whitelist")
    token = await bearer(notes, ALICE, TokenScope.PUBLISH)
    got = await notes.ask(
        "POST", "/entries/closed/", PHOTO, accept=ATOM, Authorization=token, Content_Type="image/jpeg"
    )
    ((path, *_),) = enclosures(got)
    other = await bearer(notes, BOB, TokenScope.READ)
    for headers, status in (({}, 404), ({"Authorization": other}, 403)):
        file, item = await notes.get(path, **headers), await notes.get("/entries/closed/a", **headers)
        assert (file.status, file.json["detail"]) == (status, item.json["detail"])
    await notes.component.configure(ALICE, "closed", access_model="authorize")
    assert (await notes.get(path)).status == (await notes.get("/entries/closed/a")).status == 401
    own = await notes.get(path, Authorization=token)
    assert (own.status, own.header("Cache-Control").startswith("private")) == (200, True)
    elsewhere = path.replace("/closed/", "/notes/")
    assert (await notes.get(elsewhere, Authorization=token)).status == 404, "a feed has its own files only"


@pytest.mark.parametrize("file_id", ["..%2f..%2fx", "%2e%2e", "x", "0" * 32, "0" * 64, "%00"])
async def test_addresses_of_no_file(notes: Web, file_id: str) -> None:
    assert (await notes.get(f"/files/notes/{file_id}")).status == 404


# Several parts.


def multipart(*parts: tuple[str, bytes], end: bool = True) -> bytes:
    """Parts, each with its headers behind "Content-Disposition: form-data; "."""
    body = b"".join(
        b"--x\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (head.encode(), data) for head, data in parts
    )
    return body + (b"--x--\r\n" if end else b"")


async def post(
    web: Web, token: str, body: bytes, media_type: str = "multipart/form-data; boundary=x", **headers: str
) -> Got:
    """POST of a form, unless another media type is given."""
    return await web.ask(
        "POST", "/entries/notes/", body, accept=ATOM, Authorization=token, Content_Type=media_type, **headers
    )


async def test_form_with_files(notes: Web, token: str) -> None:
    """As `curl -F title=T -F file=@photo.jpg` sends it; an input without a file is no file."""
    body = multipart(
        ('name="title"', b"T"),
        ('name="tags[]"', b"a"),
        ('name="file"; filename="photo.jpg"\r\nContent-Type: image/jpeg', PHOTO),
        ('name="file"; filename="a.mp3"', b"music"),
        ('name="other"; filename=""', b""),
    )
    got = await post(notes, token, body)
    assert [(kind, name) for _, kind, name, _ in enclosures(got)] == [
        ("image/jpeg", "photo.jpg"),
        ("audio/mpeg", "a.mp3"),
    ]
    assert etree.fromstring(got.body).findtext(f"{A}title") == "T"
    assert len(names(notes)) == 2


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("multipart/form-data", multipart(('name="title"', b"T"))),
        ("multipart/form-data; boundary=" + "y" * 100, multipart(('name="title"', b"T"))),
        ("multipart/form-data; boundary=x", b"no part at all"),
        ("multipart/form-data; boundary=x", multipart(('name="title"', b"T"), end=False)),
        ("multipart/form-data; boundary=x", multipart(('name="file"; filename="a.bin"', b"half"), end=False)),
        ("multipart/form-data; boundary=x", multipart(('name="title"\r\nContent-Transfer-Encoding: base64', b"VA=="))),
        (
            "multipart/form-data; boundary=x",
            multipart(('name="f"\r\nContent-Type: multipart/mixed; boundary=y', b"--y--")),
        ),
        ("multipart/form-data; boundary=x", multipart(('name="title"', b"\xff"))),
        ("multipart/form-data; boundary=x", multipart((f'name="title"\r\nX: {"h" * 100_000}', b"T"))),
        ("multipart/form-data; boundary=x", multipart(*[('name="title"', b"T")] * 100)),
        ("multipart/form-data; boundary=x", multipart(*[('name="f"; filename="a"', b"1")] * 21)),
        ("multipart/form-data; boundary=x", multipart(('name="unknown"', b"T"))),
        ("multipart/form-data; boundary=x", multipart(('x="title"', b"T"))),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", multipart(("name=\"f\"; filename*=klingon''%41.png", b"1"))),
        ("multipart/form-data; boundary=x", multipart(("name=\"f\"; filename*=utf-8''%ff.png", b"1"))),
        ("multipart/form-data; boundary=x", multipart(('name="f"; filename=a b c', b"1"))),
    ],
)
async def test_malformed_multipart(notes: Web, token: str, media_type: str, body: bytes) -> None:
    """A problem and not an incident; nothing is published, and nothing half is on the disk."""
    got = await post(notes, token, body, media_type)
    assert (got.status, "incident" in got.text) == (400, False), got.text
    assert (await notes.get("/feeds/notes/?timeout=0")).json["items"] == []
    assert list((notes.component.app.files.path / "new").glob("*")) == []


# Limits.


async def test_file_above_the_limit(start_web: Any) -> None:
    """With and without a declared length; nothing of it stays."""
    web = await start_web(http={"upload_bytes": 1_000})
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    assert (await upload(web, token, b"x" * 1_000)).status == 201
    got = await upload(web, token, b"x" * 1_001)
    assert (got.status, "1,000 bytes" in got.json["detail"]) == (413, True)
    async with connected(web.port) as raw:
        raw.say(_head(token, "Transfer-Encoding: chunked") + b"3e9\r\n" + b"x" * 1_001 + b"\r\n0\r\n\r\n")
        assert (await raw.hear()).status == 413
    form = await post(web, token, multipart(('name="f"; filename="a"', b"x" * 1_001)))
    assert (form.status, len(names(web))) == (413, 1)


async def test_space_of_a_user(start_web: Any) -> None:
    web = await start_web(limits={"files_bytes_per_jid": 1_000})
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    assert (await upload(web, token, b"a" * 600)).status == 201
    got = await upload(web, token, b"b" * 401, "b.jpg")
    assert (got.status, "400 bytes left" in got.json["detail"]) == (413, True)
    assert (await upload(web, token, b"b" * 400, "b.jpg")).status == 201
    assert (await upload(web, token, b"a" * 600, "c.jpg")).status == 413, "the check before the body knows no digest"


async def test_uploads_can_be_switched_off(start_web: Any) -> None:
    web = await start_web(http={"upload_bytes": 0})
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    assert (await upload(web, token)).status == 415
    assert names(web) == []


async def test_who_may_not_publish_sends_no_file(notes: Web) -> None:
    """[SF-110] The answer comes before the body is read."""
    token = await bearer(notes, BOB, TokenScope.PUBLISH)
    async with connected(notes.port) as raw:
        raw.say(_head(token, "Content-Length: 1000000"))
        assert (await raw.hear()).status == 403
    assert names(notes) == []


@pytest.mark.parametrize("fault", ["Title: =?x?Q?y?=", "Click: javascript:alert(1)"])
async def test_wrong_fields_are_found_before_the_file(notes: Web, token: str, fault: str) -> None:
    async with connected(notes.port) as raw:
        raw.say(_head(token, "Content-Length: 1000000", fault))
        assert (await raw.hear()).status == 400


async def test_empty_file(notes: Web, token: str) -> None:
    got = await upload(notes, token, b"")
    assert (got.status, got.json["detail"]) == (400, "the file is empty")


async def test_uploads_of_a_user_at_once(notes: Web, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "AT_ONCE", 0)
    handlers = notes.component.app.site.handlers.get(AuthoringHandlers)  # type: ignore[union-attr]
    handlers.uploads._running = uploads.Quota(0)
    assert (await upload(notes, token)).status == 429


def _head(token: str, *headers: str) -> bytes:
    lines = ("PUT /entries/notes/p.jpg HTTP/1.1", "Host: x", f"Authorization: {token}", *headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def test_interrupted_upload_leaves_no_file(notes: Web, token: str) -> None:
    """The client disconnects in the middle: no file, no item."""
    folder = notes.component.app.files.path / "new"
    async with connected(notes.port) as raw:
        raw.say(_head(token, "Content-Length: 1000000") + b"x" * 500_000)
        await until(lambda: folder.is_dir() and list(folder.iterdir()), "the file")
    await until(lambda: not list(folder.iterdir()), "the removal of the file")
    assert names(notes) == []
    assert (await notes.get("/feeds/notes/?timeout=0")).json["items"] == []


async def test_upload_that_stops_is_ended(start_web: Any) -> None:
    """408 after a pause of `http.first_request_s`."""
    web = await start_web(http={"first_request_s": 0.05})
    web.wait_for_heads()
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    multipart_type = "Content-Type: multipart/form-data; boundary=x"
    disposition = b"--x\r\nContent-Disposition: form-data; name=f"
    for headers, body in (
        ((), b"x"),
        ((multipart_type,), b"--"),
        ((multipart_type,), disposition + b"\r\n\r\nfield"),
        ((multipart_type,), disposition + b"; filename=a\r\n\r\n"),
        ((multipart_type,), disposition + b"; filename=a\r\n\r\nfile"),
    ):
        async with connected(web.port) as raw:
            raw.say(_head(token, "Content-Length: 1000", *headers) + body)
            assert (await raw.hear()).status == 408
    assert names(web) == []


async def test_continue_is_sent_only_for_a_file_that_fits(notes: Web, token: str) -> None:
    """RFC 9110 10.1.1."""
    async with connected(notes.port) as raw:
        raw.say(_head(token, "Content-Length: 99999999", "Expect: 100-continue"))
        assert (await raw.hear()).status == 413
    async with connected(notes.port) as raw:
        raw.say(_head(token, "Content-Length: 1", "Expect: 100-continue"))
        assert (await raw.hear(bodiless=True)).status == 100
        raw.say(b"x")
        assert (await raw.hear()).status == 201


async def test_refusal_reaches_a_client_that_still_sends(notes: Web, token: str) -> None:
    """RFC 9112 9.6: a close with unread bytes resets the connection, and a proxy then answers 502 itself."""
    size_bytes = 99_999_999
    async with connected(notes.port) as raw:
        raw.say(_head(token, f"Content-Length: {size_bytes}"))
        assert (await raw.hear()).status == 413
        raw.writer.write(bytes(8_000_000))
        await raw.writer.drain()
        raw.writer.write_eof()
        assert await raw.reader.read() == b""


async def test_refused_client_that_sends_on_is_disconnected(start_web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LINGER_S", 0.01)
    web = await start_web()
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    async with connected(web.port) as raw:
        raw.say(_head(token, "Content-Length: 99999999"))
        assert (await raw.hear()).status == 413
        assert await raw.ended() == b""


# Sessions.


TITLE_PART, CSRF_PART = ('name="title"', b"T"), 'name="csrf"'
PHOTO_PART = ('name="file"; filename="photo.jpg"', PHOTO)


async def test_form_of_a_session_carries_its_token_first(notes: Web) -> None:
    """A form with files works without script: the token of the session is its first field."""
    browser = await sign_in(notes, ALICE)
    body = multipart((CSRF_PART, browser.csrf.encode()), TITLE_PART, PHOTO_PART)
    got = await browser.change("POST", "/entries/notes/", body, Content_Type=MULTIPART, X_CSRF_Token="", Accept=ATOM)
    assert [name for _, _, name, _ in enclosures(got)] == ["photo.jpg"]
    assert etree.fromstring(got.body).findtext(f"{A}title") == "T"


@pytest.mark.parametrize("place", ["missing", "forged", "behind the title", "behind a file", "as a file", "too long"])
async def test_form_without_the_token_of_its_session_is_refused(notes: Web, place: str) -> None:
    browser = await sign_in(notes, ALICE)
    csrf = (CSRF_PART, browser.csrf.encode())
    parts = {
        "missing": (TITLE_PART,),
        "forged": ((CSRF_PART, b"x" * 43), TITLE_PART),
        "behind the title": (TITLE_PART, csrf),
        "behind a file": (PHOTO_PART, csrf),
        "as a file": (('name="csrf"; filename="a"', browser.csrf.encode()), TITLE_PART),
        "too long": ((CSRF_PART, browser.csrf.encode() + b" " * 2_000), TITLE_PART),
    }[place]
    got = await browser.change("POST", "/entries/notes/", multipart(*parts), Content_Type=MULTIPART, X_CSRF_Token="")
    assert got.status == (413 if place == "too long" else 403)
    assert (await notes.get("/feeds/notes/?timeout=0")).json["items"] == []
    assert names(notes) == []


# The life of a file.


async def test_unused_files_are_removed(notes: Web, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that is edited or deleted frees its file an hour later; a file in use stays."""
    app = notes.component.app
    ((path, *_),) = enclosures(await upload(notes, token))
    await upload(notes, token, b"other", "other.jpg")
    monkeypatch.setattr("smartfeeds.features.authoring.requests.GRACE_US", -GRACE_US)
    await remove_unused_files(app.service, app.files)
    assert len(names(notes)) == 2
    assert (await notes.ask("DELETE", "/entries/notes/photo.jpg", Authorization=token)).status == 204
    monkeypatch.setattr("smartfeeds.features.authoring.requests.GRACE_US", GRACE_US)
    await remove_unused_files(app.service, app.files)
    assert len(names(notes)) == 2, "the hour is not over"
    monkeypatch.setattr("smartfeeds.features.authoring.requests.GRACE_US", -GRACE_US)
    await remove_unused_files(app.service, app.files)
    assert names(notes) == [hashlib.sha256(b"other").hexdigest()]
    assert (await notes.get(path)).status == 404


async def test_an_entry_of_another_client_may_refer_to_a_file(
    notes: Web, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference counts, not the upload: an edit over XMPP or in Atom moves the file to another item."""
    app = notes.component.app
    ((path, *_),) = enclosures(await upload(notes, token))
    body = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>T</title><content type='html'>&lt;img src=\"https://x.example{path}\"&gt;</content></entry>"
    await notes.component.publish(ALICE, "notes", "b", body)
    await notes.component.retract(ALICE, "notes", "photo.jpg")
    monkeypatch.setattr("smartfeeds.features.authoring.requests.GRACE_US", -GRACE_US)
    await remove_unused_files(app.service, app.files)
    assert (await notes.get(path)).status == 200


async def test_deleted_feed_takes_its_files_along(notes: Web, token: str) -> None:
    app = notes.component.app
    await upload(notes, token)
    admin = await bearer(notes, ALICE, TokenScope.ADMIN)
    assert (await notes.ask("DELETE", "/feeds/notes/", Authorization=admin)).status == 204
    while names(notes):
        # The rows of the feed go in steps, after the answer.
        await remove_unused_files(app.service, app.files)


async def test_full_disk_is_no_incident(notes: Web, token: str, tmp_path: Path) -> None:
    """503, as for every failure of the store."""
    (tmp_path / "file").write_text("")
    notes.component.app.files.path = tmp_path / "file"
    got = await upload(notes, token)
    assert (got.status, "incident" in got.text) == (503, False)


async def test_file_that_is_missing_on_the_disk(notes: Web, token: str) -> None:
    """404, and the log has its digest."""
    ((path, *_),) = enclosures(await upload(notes, token))
    (digest,) = names(notes)
    notes.component.app.files.path_of(digest).unlink()
    with capture_logs() as logs:
        assert (await notes.get(path)).status == 404
    assert [(one["event"], one["digest"]) for one in logs] == [("file_missing", digest)]
