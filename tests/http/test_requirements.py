"""What a feed says of itself over HTTP: its addresses, positions, parameters and the format of its items."""

import re
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from lxml import etree

from smartfeeds.core.position import parse_position
from smartfeeds.core.token import TokenScope
from smartfeeds.core.view import PARAMETERS, parse_view
from support.bearer import bearer
from support.component import ALICE, DOMAIN, ok
from support.routes import document
from support.web import Web, WebStarter

ATOM = "http://www.w3.org/2005/Atom"


@pytest.mark.parametrize("query", ["", "?order=created", "?category=x&order=created"])
async def test_feed_states_its_requirements(notes: Web, query: str) -> None:
    """[SF-112] [SF-113] [SF-114] Every address that is named works, and each kind of position is accepted."""
    await notes.component.publish(ALICE, "notes", "a")
    base = f"{notes.origin}/feeds/notes/{query}"
    link = (await notes.get(f"/feeds/notes/{query}{'&' if query else '?'}timeout=0")).header("Link")
    (path,) = re.findall(f'<{notes.origin}([^>]*)>; rel="describedby"', link)

    got = await notes.get(path)

    about = got.json
    jsonschema.validate(about, {"$ref": "#/components/schemas/Requirements", "components": document()["components"]})
    assert "push" not in about  # without a public address there is no hub
    assert about["itemFormat"] == ATOM and about["parameters"] == dict(PARAMETERS)
    assert about["pull"] == {"application/json": base, "application/atom+xml": base}
    for address in [*about["documents"].values(), *about["sync"].values(), *about["complete"].values()]:
        response = await notes.get(address.removeprefix(notes.origin))
        assert response.status == 200, address
    entry = await notes.get(about["item"].removeprefix(notes.origin).replace("{id}", "a"))
    assert etree.fromstring(entry.body).tag == f"{{{ATOM}}}entry"
    assert about["xmpp"]["jid"] == DOMAIN
    ok(await notes.component.get(ALICE, f"<items node='{about['xmpp']['node'].replace('&', '&amp;')}'/>"))
    values = {"cursor": "0_0_00000000", "time": "0", "id": "a"}
    for kind in values:
        separator = "&" if query else "?"
        since = quote(f"{kind}:{values[kind]}", safe="")
        response = await notes.get(f"/feeds/notes/{query}{separator}timeout=0&since={since}")
        assert (response.status != 400) is (kind in about["positions"]), kind
    view = parse_view(query.removeprefix("?") or "order=modified")
    assert view is not None and parse_position("time:0", view)


async def test_requirements_are_for_readers_of_feeds(notes: Web) -> None:
    """[SF-111] A closed feed is described to those who may read it; a generic node has no such rules."""
    await notes.component.create(ALICE, "closed", access_model="whitelist")
    await notes.component.create(ALICE, "generic", kind="generic")
    assert (await notes.get("/about/closed/")).status == 404
    token = await bearer(notes, ALICE, TokenScope.READ)
    answer = await notes.get("/about/closed/", Authorization=token)
    assert (answer.status, answer.header("Cache-Control")) == (200, "private, no-cache")
    for path in ("/about/generic/", "/about/missing/"):
        assert (await notes.get(path)).status == 404
    for query in ("?max=1", "?since=time:0", "?ordr=created", "?timeout=0"):
        assert (await notes.get(f"/about/notes/{query}")).status == 400


@pytest.mark.needs("hub")
async def test_feed_states_its_hub_and_topic(start_web: WebStarter) -> None:
    """[SF-074] [SF-075] A subscription with both is accepted."""
    site = "https://feeds.example"
    web = await start_web(http={"base_url": site})
    await web.component.create(ALICE, "notes", access_model="open")
    about = (await web.get("/about/notes/?author=alice")).json
    jsonschema.validate(about, {"$ref": "#/components/schemas/Requirements", "components": document()["components"]})
    fields = {"callback": "http://reader.example/", "mode": "subscribe", "topic": about["push"]["topic"]}
    body = urlencode({f"hub.{name}": value for name, value in fields.items()}).encode()
    path = about["push"]["hub"].removeprefix(site)
    got = await web.ask("POST", path, body, Content_Type="application/x-www-form-urlencoded")
    assert (got.status, got.text) == (202, "") and about["push"]["topic"].endswith("?author=alice")
