"""Conflicts over HTTP: listed, shown, decided on, by programs and by people without script (FeedSync 3.4; A-62)."""

import base64
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from lxml import etree

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.core.token import TokenScope
from smartfeeds.features.conflicts.http import Conflicts
from smartfeeds.features.conflicts.requests import ConflictList, ListConflicts
from support.bearer import bearer
from support.component import ALICE, BOB, EVE, entry
from support.versions import B1, C1, sse_version, version
from support.web import Got, Web

ATOM = "application/atom+xml"
FORM = "application/x-www-form-urlencoded"
HTML = "text/html"
JSON = "application/json"
ME = "feeds.example.org%2Falice@example.org"
LIST, ITEM = "/conflicts/notes/", "/conflicts/notes/a"


async def bring(web: Web, token: str, payload: str, item_id: str = "a") -> None:
    path = f"/entries/notes/{item_id}"
    got = await web.ask("PUT", path, payload.encode(), Authorization=token, Content_Type=ATOM)
    assert got.status in (200, 201)


async def clash(web: Web, token: str, item_id: str = "a") -> None:
    """Makes a conflict of an item: `theirs` wins over `mine`."""
    await web.component.publish(ALICE, "notes", item_id, entry("mine"))
    await bring(web, token, version(B1, title="theirs", sync_id=item_id), item_id)


async def versions(web: Web, path: str = ITEM) -> dict[str, str]:
    """The tags of the versions of an item by their titles."""
    got = await web.get(path)
    assert got.status == 200
    return {one["item"].get("title", "-"): one["tag"] for one in got.json["versions"]}


async def decide(web: Web, authorization: str, path: str = ITEM, **decision: Any) -> Got:
    body = json.dumps(decision).encode()
    return await web.ask("POST", path, body, Authorization=authorization, Content_Type=JSON)


async def send(web: Web, token: str, *fields: tuple[str, str], **headers: str) -> Got:
    """Sends the form of the page, as a browser says that it comes from there."""
    headers = {"Sec_Fetch_Site": "same-origin", "Authorization": token, **headers}
    headers = {name: value for name, value in headers.items() if value}
    return await web.ask("POST", ITEM, urlencode(fields).encode(), Content_Type=FORM, **headers)


async def shown(web: Web, item_id: str = "a") -> dict[str, Any]:
    item: dict[str, Any] = (await web.get(f"/entries/notes/{item_id}?sync=true", JSON)).json
    return item


async def test_feed_without_conflicts_has_an_empty_list(notes: Web) -> None:
    """[FS-070] Also where there are items; one without conflicts is not found here."""
    await notes.component.publish(ALICE, "notes", "a")
    got = await notes.get(LIST)
    expected = {"count": 0, "totalItems": 0, "url": f"{notes.origin}{LIST}", "items": []}
    assert (got.status, got.json) == (200, expected)
    assert "Nothing here is in conflict" in (await notes.get(LIST, HTML)).text
    for path in (ITEM, "/conflicts/notes/none", "/conflicts/none/", "/conflicts/none/a", "/conflicts/"):
        assert (await notes.get(path)).status == 404


async def test_list_has_every_version(notes: Web, token: str) -> None:
    """[FS-070] The winner first, each as an activity that says who made it and when, and has no conflicts itself."""
    await clash(notes, token)
    (item,) = (await notes.get(LIST)).json["items"]
    assert (item["id"], item["url"]) == ("a", f"{notes.origin}{ITEM}")
    winner, other = (one["item"] for one in item["versions"])
    assert (winner["title"], other["title"]) == ("theirs", "mine")
    assert [one["sync"]["history"][0]["by"] for one in (winner, other)] == [B1, ME]
    assert "conflicts" not in winner["sync"]
    assert item == (await notes.get(ITEM)).json


async def test_list_comes_in_pages(notes: Web, token: str) -> None:
    """[FS-070] In the order in which items came here; the last page has no next one."""
    for number in range(5):
        await clash(notes, token, f"i{number}")
    path, seen = f"{LIST}?max=2", []
    while path:
        page = (await notes.get(path)).json
        assert page["totalItems"] == 5 and page["count"] == len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"]]
        path = page.get("next", "").removeprefix(notes.origin)
    assert seen == [f"i{number}" for number in range(5)]
    root = etree.HTML((await notes.get(f"{LIST}?max=2", HTML)).text)
    (more,) = root.xpath("//a[@rel='next']/@href")
    last = etree.HTML((await notes.get(f"{more}", HTML)).text)
    assert last.xpath("//section/@data-id") == ["i2", "i3"]
    assert last.xpath("//a[@class='newest']/@href") == [LIST]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ResultSetRequest | None]:
    """The pages that are asked of the service from now on."""
    pages = []
    ask = Conflicts._ask

    async def listen(self: Conflicts, request: ListConflicts) -> ConflictList:
        pages.append(request.page)
        return await ask(self, request)

    monkeypatch.setattr(Conflicts, "_ask", listen)
    return pages


async def test_page_is_asked_for_once(notes: Web, token: str, asked: list[ResultSetRequest | None]) -> None:
    """[FS-070] With one item more, which tells that there is a next page and where it begins."""
    for number in range(3):
        await clash(notes, token, f"i{number}")
    page = (await notes.get(f"{LIST}?max=2")).json
    assert ([item["id"] for item in page["items"]], page["count"], page["totalItems"]) == (["i0", "i1"], 2, 3)
    assert asked == [ResultSetRequest("3")]
    (item,) = (await notes.get(page["next"].removeprefix(notes.origin))).json["items"]
    assert item["id"] == "i2"


async def test_page_that_was_cut_short_has_a_next_one(notes: Web, token: str) -> None:
    """[FS-070] A page has no more bytes than any other; all items are found, and the last page is known."""
    for number in range(3):
        await clash(notes, token, f"i{number}")
    service = notes.component.app.service
    service.policy = replace(service.policy, page_bytes=1)
    path, seen = f"{LIST}?max=2", []
    while path:
        page = (await notes.get(path)).json
        seen.append([item["id"] for item in page["items"]])
        path = page.get("next", "").removeprefix(notes.origin)
    assert seen == [["i0"], ["i1"], ["i2"]]


@pytest.mark.parametrize("query", ["max=x", "after=x", "before=1", "max=1&max=2", "after=%FF", "Max=1"])
async def test_list_takes_max_and_after(notes: Web, query: str) -> None:
    """[A-24] Anything else is refused, or names no page."""
    assert (await notes.get(f"{LIST}?{query}")).status in (400, 404)
    assert (await notes.get(f"{ITEM}?{query}")).status == 400


async def test_keeping_the_winner(notes: Web, token: str) -> None:
    """[FS-070] [FS-071] [FS-073] One more update by who decided; the conflict is gone and is not asked about again."""
    await clash(notes, token)
    got = await decide(notes, token)
    assert (got.status, got.json) == (200, {"id": "a", "left": 0})
    item = await shown(notes)
    assert item["title"] == "theirs"
    assert item["sync"]["updates"] == 2 and "conflicts" not in item["sync"]
    assert [(one["sequence"], one["by"]) for one in item["sync"]["history"]] == [(2, ME), (1, B1)]
    await bring(notes, token, version(B1, title="theirs"))
    assert (await notes.get(LIST)).json["count"] == 0


async def test_keeping_another_version(notes: Web, token: str) -> None:
    """[FS-070] Its content stays, whichever version won."""
    await clash(notes, token)
    tags = await versions(notes)
    got = await decide(notes, token, keep=tags["mine"], seen=list(tags.values()))
    assert (got.status, got.json["left"]) == (200, 0)
    assert (await shown(notes))["title"] == "mine"


async def test_combining_versions(notes: Web, token: str) -> None:
    """[FS-070] [FS-071] The text that a user wrote out of both; what else the version has stays."""
    await bring(notes, token, version(B1, title="first"))
    await bring(notes, token, version(C1, B1, title="theirs", content="x"))
    rival = version("feeds.d.example", B1, title="mine").replace("<title>", "<category term='kept'/><title>")
    await bring(notes, token, rival)
    tags = await versions(notes)
    for wrong in ({"text": "a", "html": "b"}, {"title": 1}, {"text": " "}):
        assert (await decide(notes, token, keep=tags["mine"], **wrong)).status == 400
    assert await versions(notes) == tags

    got = await decide(notes, token, keep=tags["mine"], title="ours", html="<b>both</b>", seen=list(tags.values()))

    assert (got.status, got.json["left"]) == (200, 0)
    root = etree.fromstring((await notes.get("/entries/notes/a", ATOM)).body)
    content = root.find("{*}content")
    assert content is not None and (content.text, content.get("type")) == ("<b>both</b>", "html")
    assert (root.findtext("{*}title"), root.find("{*}category").get("term")) == ("ours", "kept")  # type: ignore[union-attr]
    assert (await shown(notes))["sync"]["updates"] == 3
    assert (await notes.get(LIST)).json["count"] == 0


@pytest.mark.needs("authoring")
async def test_form_combines_versions(notes: Web, token: str) -> None:
    """[FS-070] [A-62] The page has a form with the first version in it, for those who may decide."""
    await clash(notes, token)
    assert not etree.HTML((await notes.get(ITEM, HTML)).text).xpath("//details[@class='combine']/form")
    page = etree.HTML((await notes.get(ITEM, HTML, Authorization=token)).text)
    (form,) = page.xpath("//details[@class='combine']/form")
    fields = [(node.get("name"), node.get("value")) for node in form.iter("input")]
    assert ("title", "theirs") in fields
    (button,) = form.iter("button")
    sent = [pair for pair in fields if pair[0] != "title"] + [(button.get("name"), button.get("value"))]

    assert (await send(notes, token, *sent)).status == 400, "nothing was written"
    assert (await send(notes, token, *sent, ("keep", "x"), ("text", "t"))).status == 400
    got = await send(notes, token, *sent, ("title", "Ours"), ("text", "caf\u00e9\r\nopen"))

    assert (got.status, got.header("Location")) == (303, LIST)
    item = await shown(notes)
    assert (item["title"], item["object"]["content"]) == ("Ours", "caf\u00e9\nopen")


async def test_settling_some(notes: Web, token: str) -> None:
    """[FS-070] [FS-071] What is not decided on stays in conflict."""
    for by, title in ((B1, "b"), (C1, "c"), ("feeds.d.example", "d")):
        await bring(notes, token, version(by, title=title))
    tags = await versions(notes)
    assert (await shown(notes))["title"] == "d" and tags.keys() == {"b", "c", "d"}
    assert (await decide(notes, token, decided=[tags["b"]])).json["left"] == 1
    assert (await versions(notes)).keys() == {"c", "d"}


@pytest.mark.needs("authoring")
async def test_deleted_version_can_be_kept(notes: Web, token: str) -> None:
    """[FS-070] [FS-030] Edited here and deleted there: either way it is somebody's decision."""
    await notes.component.publish(ALICE, "notes", "a", entry("mine"))
    await bring(notes, token, version(C1, B1, deleted=True))
    assert (await notes.get("/entries/notes/a")).status == 410
    (item,) = (await notes.get(LIST)).json["items"]
    assert [one["item"].get("deleted", False) for one in item["versions"]] == [True, False]
    assert "Keep it deleted" in (await notes.get(ITEM, HTML, Authorization=token)).text
    assert (await decide(notes, token, keep=item["versions"][1]["tag"])).json["left"] == 0
    assert (await shown(notes))["title"] == "mine"


async def test_item_of_sse_is_decided_on_too(notes: Web, token: str) -> None:
    """[SSE-044] [SSE-048] Its conflicts are settled all at once."""
    await bring(notes, token, sse_version(B1, title="one"))
    await bring(notes, token, sse_version(C1, title="two"))
    tags = await versions(notes)
    assert tags.keys() == {"one", "two"}
    assert (await decide(notes, token, keep=tags["one"])).json["left"] == 0
    item = await shown(notes)
    assert (item["title"], item["sync"]["version"]) == ("one", 2)


async def test_decision_on_what_has_changed_is_refused(notes: Web, token: str) -> None:
    """[A-62] Who decides says what was looked at; where there is something else by now, nothing is done."""
    await clash(notes, token)
    seen = list((await versions(notes)).values())
    await bring(notes, token, version(C1, title="of carol"))
    before = await shown(notes)
    got = await decide(notes, token, seen=seen)
    assert (got.status, got.json["condition"]) == (409, "conflict")
    form = await send(notes, token, *(("seen", tag) for tag in seen), ("keep", seen[0]))
    assert form.status == 409 and await shown(notes) == before


WRONG = {
    "no JSON": (b"keep", 400),
    "list": (b"[]", 400),
    "member": (b'{"kept":"x"}', 400),
    "keep": (b'{"keep":1}', 400),
    "decided": (b'{"decided":"x"}', 400),
    "seen": (b'{"seen":[1]}', 400),
    "no such version": (b'{"keep":"0000"}', 404),
    "no such conflict": (b'{"decided":["0000"]}', 404),
    "nothing decided": (b'{"decided":[]}', 404),
    "too long": (b" " * 400_000, 413),
}


@pytest.mark.parametrize("case", WRONG)
async def test_decision_that_makes_no_sense_is_refused(notes: Web, token: str, case: str) -> None:
    """[A-62] With what is wrong, and nothing is done."""
    await clash(notes, token)
    body, status = WRONG[case]
    got = await notes.ask("POST", ITEM, body, Authorization=token, Content_Type=JSON)
    assert got.status == status and got.json["detail"]
    assert len(await versions(notes)) == 2


@pytest.mark.parametrize("body", ["keep=a&keep=b", "kept=a", "keep", "keep=%FF", "seen=x&" * 300])
async def test_form_that_makes_no_sense_is_refused(notes: Web, token: str, body: str) -> None:
    """[A-62] One keep, and tags."""
    await clash(notes, token)
    headers = {"Authorization": token, "Content_Type": FORM, "Sec_Fetch_Site": "same-origin"}
    assert (await notes.ask("POST", ITEM, body.encode(), **headers)).status == 400
    assert len(await versions(notes)) == 2


async def test_decision_is_json_or_a_form_and_about_an_item(notes: Web, token: str) -> None:
    """[SF-053] 415 and 405 say what there is."""
    await clash(notes, token)
    got = await notes.ask("POST", ITEM, b"{}", Authorization=token, Content_Type="text/plain")
    assert (got.status, got.header("Accept")) == (415, f"{JSON}, {FORM}")
    got = await notes.ask("POST", LIST, b"{}", Authorization=token, Content_Type=JSON)
    assert (got.status, got.header("Allow")) == (405, "GET, HEAD, OPTIONS")
    assert (await notes.get(ITEM, "image/png")).status == 406


# Who may.


async def test_deciding_takes_the_right_to_replace(notes: Web, token: str) -> None:
    """[A-62] A token for publishing of somebody who may replace the item; without one the browser is asked for it."""
    await clash(notes, token)
    nobody = await notes.ask("POST", ITEM, b"{}", Content_Type=JSON)
    assert nobody.status == 401 and "Basic" in nobody.header("WWW-Authenticate")
    for other in (
        await bearer(notes, ALICE, TokenScope.READ, "notes"),
        await bearer(notes, ALICE, TokenScope.PUBLISH, "other"),
        await bearer(notes, BOB, TokenScope.PUBLISH, "notes"),
        await bearer(notes, EVE, TokenScope.ADMIN),
    ):
        assert (await decide(notes, other)).status == 403
    assert len(await versions(notes)) == 2


async def test_conflicts_are_for_who_may_read(notes: Web, token: str) -> None:
    """[xep-map 184] Who may not read the feed sees nothing of its conflicts."""
    await clash(notes, token)
    await notes.component.configure(ALICE, "notes", access_model="whitelist")
    eve = await bearer(notes, EVE, TokenScope.READ)
    for path in (LIST, ITEM):
        assert (await notes.get(path)).status == 404
        assert (await notes.get(path, Authorization=eve)).status == 403
        assert (await notes.get(path, Authorization=token)).status == 200


async def test_conflicts_are_told_to_no_page_of_another_host(notes: Web, token: str) -> None:
    """[A-62] Neither read nor decided on: no header lets them."""
    await clash(notes, token)
    got = await notes.get(ITEM, Origin="http://evil.example", Authorization=token)
    asked = {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}
    preflight = await notes.ask("OPTIONS", ITEM, **asked)
    for answer in (got, preflight):
        assert not [name for name in answer.headers if name.startswith("Access-Control")]
    assert got.header("Cache-Control") == "no-store"


# The form.


@pytest.mark.needs("authoring")
async def test_form_decides_and_leads_back(notes: Web, token: str) -> None:
    """[FS-070] The fields are those of the page; the answer leads to what is left to decide."""
    await clash(notes, token)
    root = etree.HTML((await notes.get(ITEM, HTML, Authorization=token)).text)
    (form,) = root.xpath("//form[@class='versions'][@method='post'][@action=$path]", path=ITEM)
    seen = form.xpath(".//input[@name='seen']/@value")
    keep = form.xpath(".//article[contains(., 'mine')]//button[@name='keep']/@value")
    got = await send(notes, token, *(("seen", tag) for tag in seen), ("keep", keep[0]))
    assert (got.status, got.header("Location"), got.body) == (303, LIST, b"")
    assert (await shown(notes))["title"] == "mine"


async def test_form_may_come_with_a_password(notes: Web, token: str) -> None:
    """[A-62] As a browser sends it: Basic, with the token as the password."""
    await clash(notes, token)
    password = base64.b64encode(f"alice:{token.removeprefix('Bearer ')}".encode()).decode()
    assert (await send(notes, f"Basic {password}")).status == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_Fetch_Site": "same-origin", "Origin": "null"}, 303),
        ({"Sec_Fetch_Site": "", "Origin": "SELF"}, 303),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "none"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Origin": "SELF"}, 403),
        ({"Sec_Fetch_Site": "", "Origin": "http://evil.example"}, 403),
        ({"Sec_Fetch_Site": "", "Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "", "Origin": ""}, 303),  # no browser: a program with its own credentials
    ],
)
async def test_form_has_to_come_from_our_page(notes: Web, token: str, headers: dict[str, str], status: int) -> None:
    """[A-62] A browser that knows the password sends it with the form of any page: that decides nothing."""
    await clash(notes, token)
    headers = {name: notes.origin if value == "SELF" else value for name, value in headers.items()}
    assert (await send(notes, token, **headers)).status == status
    assert (await notes.get(LIST)).json["count"] == (1 if status == 403 else 0)


async def test_form_behind_a_proxy_comes_from_its_address(start_web: Any) -> None:
    """[A-62] What the page was asked under is where its form comes from."""
    web = await start_web(http={"base_url": "https://feeds.example.org"})
    await web.component.create(ALICE, "notes")
    token = await bearer(web, ALICE, TokenScope.PUBLISH)
    await clash(web, token)
    assert (await send(web, token, Sec_Fetch_Site="", Origin=web.origin)).status == 403
    assert (await send(web, token, Sec_Fetch_Site="", Origin="https://feeds.example.org")).status == 303


# Pages.


async def test_page_is_strict_and_runs_only_our_script(notes: Web, token: str) -> None:
    """[FS-070] The policy of all pages; it says to the form's sender, and to nobody else, where it comes from."""
    await clash(notes, token)
    for path in (LIST, ITEM):
        got = await notes.get(path, "text/html,*/*;q=0.8")
        assert "default-src 'none'" in got.header("Content-Security-Policy")
        assert got.header("Referrer-Policy") == "same-origin"
        root = etree.HTML(got.text)
        scripts = root.xpath("//script/@src")
        assert [source.partition(".")[0] for source in scripts] == ["/static/app", "/static/images"]
        assert not "".join(root.xpath("//script//text()"))
        cards = root.xpath("//section[@data-id='a']//article")
        assert ["theirs" in "".join(card.xpath(".//text()[not(ancestor::del)]")) for card in cards] == [True, False]
        assert "bob@b.example at feeds.b.example" in "".join(cards[0].itertext())


async def test_page_of_a_feed_leads_to_its_conflicts(notes: Web, token: str) -> None:
    """[FS-070] An item in conflict has a badge, whatever the view; others have none. Deciding takes it away."""
    await clash(notes, token)
    await notes.component.publish(ALICE, "notes", "b")
    for query in ("", "?sync=true", "?order=created"):
        root = etree.HTML((await notes.get(f"/feeds/notes/{query}", HTML)).text)
        assert root.xpath("//article[.//a[contains(@class, 'conflicts')]]/@data-id") == ["a"]
        assert root.xpath("//a[contains(@class, 'conflicts')]/@href") == [ITEM]
    await decide(notes, token)
    assert ITEM not in (await notes.get("/feeds/notes/", HTML)).text


async def test_sync_page_says_who_changed_entries_last(notes: Web, token: str) -> None:
    """[FS-026] ?sync=true on a page is for people: how often, who, when; deleted entries too."""
    await notes.component.publish(ALICE, "notes", "a")
    await notes.component.publish(ALICE, "notes", "a")
    await notes.component.publish(ALICE, "notes", "b")
    await notes.component.retract(ALICE, "notes", "b")
    root = etree.HTML((await notes.get("/feeds/notes/?sync=true", HTML)).text)
    told = [" ".join("".join(one.itertext()).split()) for one in root.xpath("//article/p[contains(@class, 'history')]")]
    assert told == ["changed 2 times, last by alice@example.org at feeds.example.org, 1 Jan 2026, 00:00 UTC"] * 2
    assert "changed 2 times" not in (await notes.get("/feeds/notes/", HTML)).text
