"""A database of the last program before each feature got a folder of its own: all clients go on where they were.

`tests/data/schema-0037` has the database and the answers of that program.
"""

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from click.testing import CliRunner

from smartfeeds.cli import main
from support.browsing import SESSION_COOKIE
from support.component import ALICE, DOMAIN, NS, Component, Element, entry, headers, refusal, starting
from support.web import Web, starting_web

FOLDER = Path(__file__).parents[1] / "data/schema-0037"
RECORD: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text("utf-8"))
RSM = "http://jabber.org/protocol/rsm"
# Addresses and views that wait for the item `unsent`, and one that does not select it.
LATE = {"bob": "late", "carol": "late?category=sport", "dave": "late?order=created", "erin": "late?q=word"}
OTHER = "fred@example.org"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "stored.db"
    path.write_bytes(gzip.decompress((FOLDER / "feeds.db.gz").read_bytes()))
    return path


@pytest.fixture
async def web(tmp_path: Path, database: Path) -> AsyncIterator[Web]:
    """The service of today over a copy of the database, a minute later."""
    async with starting(tmp_path, database) as start, starting_web(start) as started:
        start._clock.now_us = RECORD["at_us"] + 60_000_000
        # The recorded answers are of a service that hides closed nodes.
        yield await started(pubsub={"closed_nodes": "hide"})


def is_event(message: Element) -> bool:
    return message.find("ev:event", NS) is not None


async def events(component: Component, name: str) -> list[tuple[str, list[str | None], str]]:
    """The notifications of an address: the view, the items, and the cursor of the item before them."""
    return [
        (
            str(message.xpath("string(ev:event/ev:items/@node)", namespaces=NS)),
            [item.get("id") for item in message.iterfind(".//ev:item", NS)],
            headers(message)["PreviousCursor"],
        )
        for message in await component.events(f"{name}@example.org")
        if is_event(message)
    ]


async def answer(component: Component, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request of the record."""
    result_set = f"<set xmlns='{RSM}'>{request['set']}</set>" if request["set"] else ""
    got = await component.get(request["user"], f"<items node={quoteattr(request['node'])}/>{result_set}")
    asked = {name: request[name] for name in ("user", "node", "set")}
    if got.get("type") == "error":
        return asked | {"error": refusal(got).condition}
    found = {name: got.findtext(f".//rsm:{name}", namespaces=NS) for name in ("count", "first", "last")}
    return asked | {"ids": [item.get("id") for item in got.iterfind("ps:pubsub/ps:items/ps:item", NS)]} | found


async def test_pages_and_cursors_are_those_of_before(web: Web) -> None:
    """[OPS-091] Both orders, filters, spans, sync data, rights, counts, and every cursor that clients have stored."""
    requests = [one for one in RECORD["answers"] if one["node"] not in LATE.values()]
    assert len(requests) > 300
    assert {"first", "error"} < {key for request in requests for key in request}
    assert [await answer(web.component, request) for request in requests] == requests


async def test_stored_cursor_gives_what_came_after_it(web: Web) -> None:
    """[OPS-091] The items that followed when the cursor was stored, then the one that was published since."""
    for view in LATE.values():
        pages = {one["set"]: one for one in RECORD["answers"] if one["node"] == view}
        following, after = ["unsent"], []
        page = pages["<max>3</max>"]
        while page["ids"]:
            after.append((page["last"], page["ids"]))
            page = pages[f"<max>3</max><after>{page['last']}</after>"]
        assert after
        for cursor, ids in reversed(after):
            request = {"user": ALICE, "node": view, "set": f"<after>{cursor}</after>"}
            assert (await answer(web.component, request))["ids"] == following
            following = ids + following


async def test_pulls_over_http_are_those_of_before(web: Web) -> None:
    """[OPS-091] With and without the stored token."""
    assert {pull["status"] for pull in RECORD["pulls"]} == {200, 404}
    for pull in RECORD["pulls"]:
        headers_ = {"Authorization": f"Bearer {RECORD['token']}"} if pull["token"] else {}
        got = await web.get(pull["path"], "application/json", **headers_)
        found: dict[str, Any] = {name: pull[name] for name in ("path", "token")} | {"status": got.status}
        if got.status == 200:
            body = got.json
            found["ids"] = [one["id"] for one in body["items"]]
            found |= {name: body.get(name) for name in ("last_cursor", "totalItems")}
        assert found == pull


async def test_subscribers_go_on_where_they_were(web: Web) -> None:
    """[OPS-091] The item that waited is sent once to each, and PreviousCursor proves that nothing is missing."""
    for name, view in LATE.items():
        assert await events(web.component, name) == [(view, ["unsent"], RECORD["marks"][f"{name}@example.org {view}"])]
    assert [message for message in await web.component.events(OTHER) if is_event(message)] == []

    await web.component.publish(ALICE, "news", "new", entry("new word", "<category term='sport'/>"))

    for name, view in LATE.items():
        news = view.replace("late", "news")
        assert await events(web.component, name) == [(news, ["new"], RECORD["marks"][f"{name}@example.org {news}"])]
    assert [message for message in await web.component.events(OTHER) if is_event(message)] == []


@pytest.mark.needs("bot")
async def test_follower_in_chat_goes_on(web: Web) -> None:
    """[OPS-091]"""
    await web.component.events("gina@example.org")
    await web.component.publish(ALICE, "news", "new", entry("Told in chat"))
    (message,) = await web.component.events("gina@example.org")
    assert "Told in chat" in str(message.findtext("c:body", namespaces=NS))


async def test_token_and_session_are_valid(web: Web) -> None:
    """[OPS-091]"""
    cookie = f"{SESSION_COOKIE}={RECORD['session']}"
    assert (await web.get("/feeds/closed/?timeout=0", "application/json")).status == 404
    assert (await web.get("/feeds/closed/", "text/html", Cookie=cookie)).status == 200
    got = await web.ask(
        *("PUT", "/entries/closed/new", entry("new").encode()),
        Authorization=f"Bearer {RECORD['token']}",
        Content_Type="application/atom+xml",
    )
    assert got.status == 201


@pytest.mark.needs("cloud", "conflicts", "hub", "mirrors", "polling", "prefetch", "privacy")
def test_lists_of_commands_are_those_of_before(database: Path) -> None:
    """[OPS-091] Every row of nodes, subscriptions, tokens, mirrors, sources, callbacks, conflicts and enclosures."""
    config = database.with_name("smartfeeds.toml")
    config.write_text(
        f'[component]\njid = "{DOMAIN}"\nsecret = "secret"\n[store]\nurl = "sqlite:///{database}"\n'
        '[http]\nbase_url = "http://127.0.0.1:8280"\n[prefetch]\nfolder = "enclosures"\n'
    )
    config.chmod(0o600)
    assert all(RECORD["lists"].values())
    upgraded = CliRunner().invoke(main, ["db", "upgrade", "--config", str(config)])
    assert upgraded.exit_code == 0, upgraded.output
    for command, rows in RECORD["lists"].items():
        run = CliRunner().invoke(main, [*command.split(), "--json", "--config", str(config)])
        assert run.exit_code == 0, run.output
        assert json.loads(run.stdout) == rows, command
