"""Moves in the outline of a feed over HTTP: `PATCH /entries/NAME/ID`."""

import json

import pytest
import pytest_asyncio
from lxml import html

from smartfeeds.core.token import TokenScope
from smartfeeds.formats.opml import read_outline
from support.bearer import bearer
from support.browsing import sign_in
from support.component import ALICE, BOB
from support.web import Got, Web

pytestmark = pytest.mark.shared

JSON, HTML = "application/json", "text/html"


@pytest_asyncio.fixture(loop_scope="module")
async def outline(notes: Web) -> Web:
    for item_id in "abc":
        await notes.component.publish(ALICE, "notes", item_id)
    return notes


async def move(web: Web, token: str, item_id: str, body: object, **headers: str) -> Got:
    data = json.dumps(body).encode()
    return await web.ask("PATCH", f"/entries/notes/{item_id}", data, Authorization=token, Content_Type=JSON, **headers)


async def shape(web: Web) -> object:
    """The outline as a subscriber reads it: the versions and ids of its lines, and what is in them."""

    def lines(outlines):  # type: ignore[no-untyped-def]
        return [(one.extensions[0].split(b'updates="')[1][:1].decode(), lines(one.children)) for one in outlines]

    return lines(read_outline((await web.get("/feeds/notes.opml?sync=true&max=all")).body).outlines)


async def test_move_is_a_change_that_subscribers_read(outline: Web, token: str) -> None:
    """[SSE-028] By a step and by a place; the entity tag is the new one."""
    got = await move(outline, token, "b", {"step": "indent"})
    assert got.status == 204
    assert await shape(outline) == [("1", [("2", [])]), ("1", [])]
    tag = (await outline.get("/entries/notes/b")).header("ETag")
    assert got.header("ETag") == tag

    got = await move(outline, token, "b", {"parent": "", "after": "c"}, If_Match=tag)
    assert got.status == 204
    assert await shape(outline) == [("1", []), ("1", []), ("3", [])]
    assert (await move(outline, token, "b", {"step": "up"}, If_Match=tag)).status == 412


@pytest.mark.parametrize(
    ("item_id", "body", "status", "text"),
    [
        ("a", {"step": "up"}, 409, "first one"),
        ("a", {"step": "left"}, 400, "up, down, indent, outdent"),
        ("a", {"step": "up", "after": "b"}, 400, "a move is"),
        ("a", {"after": 1}, 400, "a move is"),
        ("a", {"after": None}, 400, "a move is"),
        ("a", {"place": "b"}, 400, "a move is"),
        ("a", {}, 400, "a move is"),
        ("a", ["up"], 400, "a move is"),
        ("a", {"parent": "missing"}, 404, "no such parent"),
        ("missing", {"step": "up"}, 404, "no such item"),
    ],
)
async def test_move_that_is_refused(
    outline: Web, token: str, item_id: str, body: object, status: int, text: str
) -> None:
    got = await move(outline, token, item_id, body)
    assert (got.status, text in got.text) == (status, True), got.text
    assert await shape(outline) == [("1", [])] * 3


async def test_move_needs_a_token_that_may_publish(outline: Web) -> None:
    """[SF-110]"""
    reading = await bearer(outline, ALICE, TokenScope.READ, "notes")
    stranger = await bearer(outline, BOB, TokenScope.PUBLISH, "notes")
    assert (await move(outline, reading, "b", {"step": "up"})).status == 403
    assert (await move(outline, stranger, "b", {"step": "up"})).status == 403
    got = await outline.ask("PATCH", "/entries/notes/b", b"{}", Content_Type=JSON)
    assert got.status == 401


# On the page.


@pytest.mark.needs("authoring")
async def test_page_has_the_outline_and_moves_its_items(outline: Web) -> None:
    """[SSE-028] Buttons that do nothing are disabled; a move leads back to the line that was moved."""
    alice = await sign_in(outline, ALICE)
    assert "/outline/notes/" in (await alice.get("/feeds/notes/?timeout=0", HTML)).text
    got = await alice.post("/outline/notes/", "id=b&step=indent")
    assert got.status == 303
    path, _, anchor = got.header("Location").partition("#")
    page = html.fromstring((await alice.get(path)).text)
    [line] = page.xpath(f"//li[@id='{anchor}']")
    assert (line.get("data-id"), [one.get("data-id") for one in line.iterancestors("li")]) == ("b", ["a"])
    lines = {one.get("data-id"): one for one in page.xpath("//li[@data-id]")}
    enabled = {name: one.xpath("./div/form/button[not(@disabled)]/@value") for name, one in lines.items()}
    assert enabled == {"a": ["down"], "b": ["outdent"], "c": ["up", "indent"]}
    names = page.xpath("//button[@name='step']/@aria-label")
    assert len(set(names)) == len(names) == 12


async def test_page_without_rights_has_no_buttons(outline: Web) -> None:
    assert (await outline.get("/outline/notes/", HTML)).status == 401
    bob = await sign_in(outline, BOB)
    page = html.fromstring((await bob.get("/outline/notes/", HTML)).text)
    assert [one.get("data-id") for one in page.xpath("//li[@data-id]")] == ["a", "b", "c"]
    assert not page.xpath("//button[@name='step']")
    assert (await bob.post("/outline/notes/", "id=b&step=up")).status == 403


@pytest.mark.parametrize(("fields", "status"), [("id=b&step=left", 400), ("id=b", 400), ("id=no&step=up", 404)])
async def test_form_that_the_page_does_not_have(outline: Web, fields: str, status: int) -> None:
    alice = await sign_in(outline, ALICE)
    assert (await alice.post("/outline/notes/", fields)).status == status
