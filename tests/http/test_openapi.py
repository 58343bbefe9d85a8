"""The description at /openapi.json is a valid one, is complete, and is what the running service does."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from openapi_spec_validator import validate

from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.core.options import OPTIONS
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import StoreError
from smartfeeds.features.pages import setup
from smartfeeds.http.negotiation import MULTIPART, WEB_FORM
from smartfeeds.http.openapi import document as document_of
from smartfeeds.http.operations import Operation
from support.api_requests import (
    ADMINISTRATION,
    ATOM,
    FOLLOWED,
    HUB,
    IMAGES,
    JSON,
    PARTS,
    SITE,
    Requests,
    ask_cloud,
    ask_enclosures,
    ask_for_logo,
    ask_hub,
    ask_more_than_allowed,
    ask_slowly,
    ask_to_follow_more_than_allowed,
    concrete,
    tear,
)
from support.bearer import bearer
from support.component import ALICE, CAROL, EVE, bare, entry
from support.routes import TABLE, document
from support.versions import B1
from support.web import Got, Web, WebStarter

METHODS = ("get", "put", "post", "patch", "delete")

PathMethod = tuple[str, str]  # the path as it is documented, the method
Seen = tuple[str, str, str, str]  # and the status and media type of an answer


def operations() -> list[PathMethod]:
    """Every path of the document with each of its methods."""
    return [(path, method) for path, item in document()["paths"].items() for method in METHODS if method in item]


def documented() -> set[Seen]:
    """Everything that the document says may come."""
    found: set[Seen] = set()
    for path, method in operations():
        for status, answer in document()["paths"][path][method]["responses"].items():
            found |= {(path, method, status, media_type) for media_type in answer.get("content", {"": None})}
    return found


def check(path: str, method: str, got: Got) -> Seen:
    """What an answer shows of an operation. Fails where the document does not say so."""
    media_type = got.header("Content-Type").partition(";")[0]
    answer = document()["paths"][path][method]["responses"].get(str(got.status))
    assert answer is not None, (path, method, got)
    content = answer.get("content", {"": {}})
    assert media_type in content, (path, method, got)
    if media_type.endswith("json"):
        schema = {**content[media_type]["schema"], "components": document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(got.json)
    assert not got.body or media_type, (path, method, got)
    return path, method, str(got.status), media_type


def test_document_is_valid() -> None:
    """OpenAPI 3.1."""
    validate(document())


def test_options_are_named() -> None:
    """[SF-114] Every option of a node and its kind, and no other member; choices as they are offered."""
    schema = document()["components"]["schemas"]["Options"]
    assert schema["properties"].keys() == {"kind", *OPTIONS}
    validator = jsonschema.Draft202012Validator(schema)
    good = {"title": "News", "access_model": "open", "deliver_payloads": True, "max_payload_size": 2_000, "contact": []}
    assert validator.is_valid(good)
    for bad in ({"access_mode": "whitelist"}, {"access_model": "closed"}, {"kind": "leaf"}):
        assert not validator.is_valid(bad), bad


def test_pages_for_people_are_left_out() -> None:
    """Programs have operations of their own for what the pages of administration and the editor do."""
    folders = {path.split("/")[1] for path in document()["paths"]}
    assert not folders & {"account", "admin", "delete", "write"}


def test_schema_of_a_search_is_the_same_in_every_dialect() -> None:
    """Without the flag for Unicode \\w has the letters of ASCII only (ECMA-262, 22.2)."""
    (parameter,) = (one for one in document()["paths"]["/search"]["get"]["parameters"] if one["name"] == "q")
    pattern = parameter["schema"]["pattern"]
    for flags in (re.ASCII, re.UNICODE):
        texts = {
            text: re.search(pattern, text, flags) is not None for text in ("", " ", "a", "7", "é", "жук", "!?", "a\0")
        }
        assert texts == {"": True, " ": True, "a": True, "7": True, "é": True, "жук": True, "!?": False, "a\0": False}


async def test_document_is_served(web: Web) -> None:
    """As JSON, and packed for who takes it."""
    got = await web.get("/openapi.json")
    assert (got.status, got.header("Content-Type"), got.json) == (200, JSON, document())
    assert (await web.get("/openapi.json", Accept_Encoding="gzip")).header("Content-Encoding") == "gzip"


async def test_every_route_is_documented_and_every_path_is_routed(web: Web) -> None:
    """[SF-112] The document has all routes and no other; the service takes each path for the route of its template."""
    assert set(operations()) == {(route.path, route.method.lower()) for route in TABLE if route.operation.described}
    site = web.component.app.site
    assert site is not None
    router = site.router
    for route in TABLE:
        path = concrete(route.path).partition("?")[0]
        resource = router._target(path, is_post=False).resource
        assert resource.template.text == route.path
        assert resource.methods[route.method][0] == route.operation


def test_operation_documents_what_follows_from_its_fields() -> None:
    """[SF-112] A new route needs no other line: statuses, security and the body come from the operation."""
    body = {ATOM: {"type": "string"}}
    operation = Operation("x", "An x", {200: {}}, errors=(409,), body=body, scope=TokenScope.ADMIN)
    paths = document_of([("GET", "/x", Operation("y", "A y", {200: {}})), ("PUT", "/x/{name}/", operation)], ())[
        "paths"
    ]
    assert list(paths["/x"]["get"]["responses"]) == ["200", "400", "401", "503"]
    put = paths["/x/{name}/"]["put"]
    assert list(put["responses"]) == ["200", *map(str, (400, 401, 403, 404, 408, 409, 413, 415, 503))]
    assert (put["security"], put["requestBody"]["content"].keys()) == ([{"token": []}], body.keys())
    assert [one["name"] for one in paths["/x/{name}/"]["parameters"]] == ["name"]


async def refused(web: Web, token: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Got]]:
    """What any operation may be answered with: no host, no credentials, no rights, nothing there, no store."""
    found: list[tuple[str, str, Got]] = []
    eve = await bearer(web, EVE, TokenScope.ADMIN)
    publisher = await bearer(web, ALICE, TokenScope.PUBLISH)
    for path, method in operations():
        body = entry("t").encode() if path.startswith("/entries") and method in ("put", "post") else None
        kind = {"Content_Type": ATOM} if body else {}
        if body is None and (body := ADMINISTRATION.get((path, method))) is not None:
            kind = {"Content_Type": JSON}

        async def ask(target: str, path: str = path, method: str = method, **headers: str) -> None:
            found.append((path, method, await web.ask(method.upper(), target, body, **kind, **headers)))  # noqa: B023

        await ask(concrete(path), Host="no host")
        await ask(concrete(path), Authorization="Bearer unknown")
        if "{name}" in path:
            if path != "/feeds/{name}":
                await ask(concrete(path, "closed"), Authorization=eve)
            nameless = (path, method) in (
                ("/feeds/{name}/", "put"),
                ("/feeds/{name}", "get"),
                (HUB, "post"),
                (FOLLOWED, "delete"),
            )
            missing = "a" * 2_000 if nameless else "missing"
            await ask(concrete(path, missing), Authorization=token)
        elif path.endswith("/{file}"):
            await ask(path.replace("{file}", "missing"))
        if (path, method) in ADMINISTRATION:
            await ask(concrete(path), Authorization=publisher)

    async def fail(*_values: object, **_more: object) -> Any:
        raise StoreError("gone")

    monkeypatch.setattr(web.component.app.service, "read", fail)
    for path, method in operations():
        body = ADMINISTRATION.get((path, method))
        kind = {"Content_Type": JSON} if body else {}
        got = await web.ask(method.upper(), concrete(path), body, Authorization=token, **kind)
        found.append((path, method, got))
    monkeypatch.undo()
    return found


@pytest.mark.needs("administration", "bot", "cloud", "conflicts", "documents", "hub", "mirrors")
async def test_every_documented_answer_comes_and_no_other(
    start_web: WebStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[SF-112] Each status and each media type of each operation, with bodies as their schemas say."""
    # The host of images is on this machine, which counts as public here.
    limits = replace(setup.IMAGE_LIMITS, allowed=parse_networks(("127.0.0.0/8",)))
    monkeypatch.setattr(setup, "IMAGE_LIMITS", limits)
    web = await start_web(
        pubsub={"admins": [bare(ALICE)], "creators": ["example.org"]},
        site={"images": "on"},
        sources={"allowed_networks": ["127.0.0.0/8"]},
    )
    await web.component.create(ALICE, "notes", access_model="open")
    await web.component.create(ALICE, "closed", access_model="authorize")
    await web.component.affiliate(ALICE, "notes", CAROL, "publish-only")
    for item_id in ("gone", "a"):
        await web.component.publish(ALICE, "notes", item_id)
    await web.component.retract(ALICE, "notes", "gone")
    token = await bearer(web, ALICE, TokenScope.ADMIN)
    await tear(web, token, B1)
    (tmp_path / "logo.png").write_bytes(IMAGES[0])
    small = await start_web(
        store={"url": f"sqlite:///{tmp_path / 'small.db'}"},  # one process serves a database
        http={"first_request_s": 0.5, "base_url": SITE},
        limits={"publishes_per_s": 0.05, "subscriptions_per_jid": 1},
        bot={"enabled": False},
        site={"logo": tmp_path / "logo.png"},
        prefetch={"folder": tmp_path / "enclosures"},
    )
    small.wait_for_heads()
    await small.component.create(ALICE, "notes", access_model="open")
    found = await refused(web, token, monkeypatch)
    requests, of_small = Requests(web, token), Requests(small, await bearer(small, ALICE, TokenScope.ADMIN))
    for ask_part in PARTS:
        await ask_part(requests)
    await ask_enclosures(of_small)
    await ask_more_than_allowed(of_small)
    await ask_slowly(of_small)
    await ask_hub(of_small)
    await ask_cloud(of_small)
    await ask_for_logo(of_small)
    await ask_to_follow_more_than_allowed(of_small)
    seen = {check(*one) for one in (*found, *requests.answers, *of_small.answers)}
    assert sorted(documented() - seen) == [] == sorted(seen - documented())


ADDRESS = "https://feeds.example.org/entries/notes/a"
MICROPUB_BODIES = {
    "h-entry": (
        JSON,
        {"type": ["h-entry"], "properties": {"content": [{"html": "<b>x</b>"}], "category": ["a"]}},
        True,
    ),
    "update": (JSON, {"action": "update", "url": ADDRESS, "add": {"name": ["x"]}, "delete": ["category"]}, True),
    "delete": (JSON, {"action": "delete", "url": ADDRESS}, True),
    "entry in a form": (WEB_FORM, {"h": "entry", "content": "x", "category[]": "a"}, True),
    "deletion in a form": (WEB_FORM, {"action": "delete", "url": ADDRESS}, True),
    "photo": (MULTIPART, {"h": "entry", "content": "x", "photo": "..."}, True),
    "other type": (JSON, {"type": ["h-event"], "properties": {"content": ["x"]}}, False),
    "undelete": (JSON, {"action": "undelete", "url": ADDRESS}, False),
    "value that is no array": (JSON, {"action": "update", "url": ADDRESS, "add": {"name": "x"}}, False),
    "deletion of nothing": (WEB_FORM, {"action": "delete"}, False),
    "blank": (WEB_FORM, {"h": "entry", "content": " "}, False),
}


@pytest.mark.parametrize(("media_type", "body", "good"), MICROPUB_BODIES.values(), ids=MICROPUB_BODIES)
async def test_bodies_of_micropub_are_described(
    notes: Web, token: str, media_type: str, body: dict[str, Any], good: bool
) -> None:
    """[SF-112] In JSON, in a form, and in a form with files: the service accepts what the schema accepts."""
    schema = document()["paths"]["/micropub/{name}"]["post"]["requestBody"]["content"][media_type]["schema"]
    assert jsonschema.Draft202012Validator(schema).is_valid(body) == good
    await notes.component.publish(ALICE, "notes", "a")
    if "url" in body:
        body = body | {"url": f"{notes.origin}/entries/notes/a"}
    if media_type == MULTIPART:
        form = aiohttp.FormData({name: text for name, text in body.items() if name != "photo"})
        form.add_field("photo", b"...", filename="a.jpg", content_type="image/jpeg")
        data: dict[str, Any] = {"data": form}
    else:
        data = {"json": body} if media_type == JSON else {"data": body}
    url = f"{notes.origin}/micropub/notes"
    async with notes.session.post(url, headers={"Authorization": token}, **data) as got:
        assert (got.status in (201, 204)) == good, await got.text()
