"""The HTTP side described for machines: an OpenAPI 3.1 document, served at /openapi.json (SF-112).

It is made from the tables that the answers are made from; a test holds it against the running service.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from smartfeeds import __version__
from smartfeeds.core.view import PARAMETERS
from smartfeeds.formats.json_text import dump_json
from smartfeeds.http import negotiation as n
from smartfeeds.http.calls import Call
from smartfeeds.http.conflicts import FORM
from smartfeeds.http.feeds import SUFFIXES
from smartfeeds.http.health import METRICS
from smartfeeds.http.http_errors import PROBLEM
from smartfeeds.http.lists import PARAMETERS as LIST_PARAMETERS
from smartfeeds.http.negotiation import Form
from smartfeeds.http.openapi_schemas import SCHEMAS, TEXT, Schema, ref
from smartfeeds.http.queries import ALL, MAX_CALLBACK
from smartfeeds.http.replies import Reply
from smartfeeds.http.static import LOGIN

OPENAPI = "/openapi.json"
_JSON = "application/json"
_OF_FORM: Mapping[Form, Schema] = {n.JSON: ref("Collection"), n.JSON_FEED: ref("JsonFeed")}
_ANYBODY: list[dict[str, list[str]]] = [{}, {"token": []}]
_BEARER: list[dict[str, list[str]]] = [{"token": []}]
_LIST_PARAMETERS = {"author": "Words", "category": "Words", "in-reply-to": "Words", "kind": "Kinds"}
_OWN_PARAMETERS: Mapping[str, tuple[Schema, str]] = {
    "since": (ref("Position"), "items after this position, which need not be that of an item"),
    "until": (ref("Position"), "items before this position; empty for the newest page"),
    "max": ({"type": "integer", "minimum": 0, "maximum": 10**18 - 1}, "items at most"),
}
_TIMEOUT = (
    {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
    "how many seconds to wait while there is nothing in range; the service has a longest time and a usual one",
)
_CALLBACK = (
    {
        "type": "string",
        "pattern": r"^[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*$",
        "maxLength": MAX_CALLBACK,
    },
    "the JavaScript function that is called with the answer (JSON-P)",
)
_DESCRIPTIONS: Mapping[int, str] = {
    200: "here it is",
    201: "it was made",
    204: "done",
    303: "done; look there",
    304: "what you have is what there is",
    307: "look there",
    308: "look there, from now on",
    400: "the request is wrong; the detail says where",
    401: "a bearer token is needed, or this one is not good",
    403: "you may not",
    404: "there is no such thing, or not for you",
    406: "not in any of these media types; of options, not with this value",
    408: "the body did not come in time",
    409: "it is there already, in the way of something, or not what you have seen",
    410: "it was deleted; what is left of it",
    412: "it is not what you have seen; read it again",
    413: "too large",
    415: "not a media type that is taken",
    429: "too much at once; try again later",
    503: "the service cannot do it at the moment; try again later",
}


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "smartfeeds",
            "version": __version__,
            "license": {"name": "MIT", "identifier": "MIT"},
            "summary": "Feeds whose followers can prove that they have everything",
            "description": (
                "Every error is a problem (RFC 9457); one that was not foreseen has the status 500 and the number of "
                "an incident. HEAD goes with GET. The address of a feed without its last slash leads to the one with "
                "it (308). In names a slash stands for itself or is written %2F."
            ),
        },
        "servers": [{"url": "/"}],
        "paths": {**_lists(), **_feeds(), **_entries(), **_conflicts(), **_operators()},
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "parameters": {
                "name": _parameter("name", "path", TEXT | {"maxLength": 1023}, "the feed"),
                "id": _parameter("id", "path", TEXT | {"maxLength": 1023}, "the item"),
                "if-none-match": _parameter("If-None-Match", "header", {"type": "string"}, "tags of what you have"),
                "if-match": _parameter("If-Match", "header", {"type": "string"}, "the tag of what is to be changed"),
                "last-event-id": _parameter(
                    "Last-Event-ID", "header", {"type": "string"}, "of an event stream: the cursor to go on from"
                ),
            },
        },
    }


async def get_openapi(call: Call) -> Reply:
    """The document itself."""
    return _made(zipped=n.takes_gzip(call.header("Accept-Encoding")))


@cache
def _made(*, zipped: bool) -> Reply:
    reply = Reply(dump_json(document()), _JSON, headers={"Cache-Control": "no-cache", "Vary": "Accept-Encoding"})
    return reply.zipped() if zipped else reply


def _lists() -> dict[str, Any]:
    """The list of feeds, in a media type of one's choice and under an address for each."""
    text: Schema = {"type": "string"}
    forms = {_plain(form): ref("List") if form is n.JSON else text for form in n.OF_LIST}
    errors = (304, 400, 401, 503)
    known = {
        "max": _query("max", _OWN_PARAMETERS["max"][0], "feeds at most; of NNO, entries"),
        "after": _query("after", TEXT, "feeds behind the one of this name"),
        "before": _query("before", TEXT, "feeds before the one of this name; not together with after"),
    }
    parameters = {
        form: [*(known[name] for name in names), ref("if-none-match", "parameters")]
        for form, names in LIST_PARAMETERS.items()
    }
    own = {
        f"/feeds.{form.suffix}": {
            "get": _operation(
                f"list-{form.suffix}",
                f"The feeds that may be seen, as {_plain(form)}",
                _answers(200, {_plain(form): forms[_plain(form)]}) | _errors(*errors),
                parameters=parameters[form],
            )
        }
        for form in n.OF_LIST
        if form is not n.HTML
    }
    every = _operation(
        "list",
        "The feeds that may be seen, in a media type of your choice; OPML takes no parameters, NNO takes max",
        _answers(200, forms) | _errors(*errors, 406),
        parameters=parameters[n.JSON],
    )
    plain = _operation("list-redirect", "The way to the list", _answers(308) | _errors(400, 401, 503))
    return {"/feeds/": {"get": every}, "/feeds": {"get": plain}, **own}


def _feeds() -> dict[str, Any]:
    view = [
        _query(name, ref(_LIST_PARAMETERS.get(name, "")), text)
        for name, text in PARAMETERS.items()
        if name in _LIST_PARAMETERS
    ]
    view += [_query("order", ref("Order"), PARAMETERS["order"]), _query("q", TEXT, PARAMETERS["q"])]
    view.append(_query("sync", ref("Yes"), PARAMETERS["sync"]))
    position = [_query(name, *what) for name, what in _OWN_PARAMETERS.items()]
    most, text = _OWN_PARAMETERS["max"]
    whole = _query("max", {"anyOf": [most, {"const": ALL}]}, f"{text}; all with sync=true, of Atom")
    call = [_query("timeout", *_TIMEOUT), _query("callback", *_CALLBACK)]
    known = ref("if-none-match", "parameters")
    forms = {_plain(form): _OF_FORM.get(form, {"type": "string"}) for form in n.OF_FEED}
    script = {_bare(n.JAVASCRIPT): {"type": "string"}}
    errors = (304, 400, 401, 403, 404, 503)
    documents = {_plain(form): _OF_FORM.get(form, {"type": "string"}) for form in SUFFIXES.values()}
    return {
        "/feeds/{name}/": {
            "parameters": [ref("name", "parameters")],
            "get": _operation(
                "pull",
                "A page of a feed, in a media type of your choice; text/event-stream goes on with what comes",
                _answers(200, forms | script) | _errors(*errors, 406),
                parameters=[*position, *call, *view, known, ref("last-event-id", "parameters")],
            ),
            "put": _operation(
                "createFeed",
                "Makes a feed",
                _answers(201) | _errors(400, 401, 403, 404, 406, 408, 409, 413, 415, 503),
                security=_BEARER,
                body={_JSON: ref("Options")},
                needs_body=False,
            ),
            "delete": _operation(
                "deleteFeed",
                "Deletes a feed with all its items",
                _answers(204) | _errors(400, 401, 403, 404, 503),
                security=_BEARER,
            ),
        },
        "/feeds/{name}.{suffix}": {
            "parameters": [
                ref("name", "parameters"),
                _parameter("suffix", "path", {"enum": list(SUFFIXES)}, "the format"),
            ],
            "get": _operation(
                "document",
                "The newest items of a feed as a document, for readers that know no positions",
                _answers(200, documents | script) | _answers(308) | _errors(*errors),
                parameters=[*position[:-1], whole, *call, *view, known],
            ),
        },
    }


def _entries() -> dict[str, Any]:
    sync = _query("sync", ref("Yes"), PARAMETERS["sync"])
    forms = {_plain(n.ATOM): {"type": "string"}, _plain(n.JSON): ref("Item")}
    bodies = {kind: {"type": "string"} for kind in n.ATOM.asked_as} | {
        kind: {"type": "object"} for kind in n.JSON.asked_as
    }
    changes = (400, 401, 403, 404, 408, 413, 415, 429, 503)
    return {
        "/entries/{name}/{id}": {
            "parameters": [ref("name", "parameters"), ref("id", "parameters")],
            "get": _operation(
                "getItem",
                "One item",
                _answers(200, forms) | _answers(410, forms) | _errors(304, 400, 401, 403, 404, 406, 503),
                parameters=[ref("if-none-match", "parameters"), sync],
            ),
            "put": _operation(
                "putItem",
                "Makes or replaces an item",
                _answers(200, forms) | _answers(201, forms) | _answers(204) | _errors(*changes, 409, 412),
                security=_BEARER,
                body=bodies,
                parameters=[ref("if-match", "parameters"), ref("if-none-match", "parameters"), sync],
            ),
            "delete": _operation(
                "retractItem",
                "Retracts an item",
                _answers(204) | _errors(400, 401, 403, 404, 412, 429, 503),
                security=_BEARER,
                parameters=[ref("if-match", "parameters")],
            ),
        },
        "/entries/{name}/": {
            "parameters": [ref("name", "parameters")],
            "post": _operation(
                "postItem",
                "Publishes an item whose id the service makes",
                _answers(200, forms) | _answers(201, forms) | _errors(*changes),
                security=_BEARER,
                body=bodies,
                parameters=[sync],
            ),
            "delete": _operation(
                "purge",
                "Retracts all items of a feed",
                _answers(204) | _errors(400, 401, 403, 404, 503),
                security=_BEARER,
            ),
        },
    }


def _conflicts() -> dict[str, Any]:
    name = ref("name", "parameters")
    page: Schema = {"type": "string"}
    html = _plain(n.HTML)
    after: Schema = {"type": "string", "pattern": "^[0-9]{1,18}$"}
    errors = (400, 401, 403, 404, 406, 503)
    return {
        "/conflicts/{name}/": {
            "parameters": [name],
            "get": _operation(
                "listConflicts",
                "The items of a feed that have conflicts",
                _answers(200, {_JSON: ref("Conflicts"), html: page}) | _errors(*errors),
                parameters=[
                    _query("max", _OWN_PARAMETERS["max"][0], "items at most"),
                    _query("after", after, "items behind this place; next has it"),
                ],
            ),
        },
        "/conflicts/{name}/{id}": {
            "parameters": [name, ref("id", "parameters")],
            "get": _operation(
                "getConflict",
                "The versions of an item that has conflicts",
                _answers(200, {_JSON: ref("Conflicted"), html: page}) | _errors(*errors),
            ),
            "post": _operation(
                "decide",
                "Decides on the conflicts of an item; a form leads back to the list, and has to come from its page",
                _answers(200, {_JSON: ref("Decided")})
                | _answers(303)
                | _errors(400, 401, 403, 404, 408, 409, 413, 415, 429, 503),
                security=_BEARER,
                body={_JSON: ref("Decision"), FORM: ref("Decision")},
            ),
        },
    }


def _operators() -> dict[str, Any]:
    ready: Schema = {"type": "object", "required": ["ready"], "properties": {"ready": {"const": True}}}
    text: Schema = {"type": "string"}
    of: dict[str, tuple[str, str, dict[str, Schema], tuple[int, ...]]] = {
        "/healthz": ("healthz", "Whether the process answers", {"text/plain": {"const": "ok\n"}}, ()),
        "/readyz": ("readyz", "Whether it can do its work, and if not, why", {_JSON: ready}, (503,)),
        "/metrics": ("metrics", "Metrics of Prometheus, for some addresses", {_bare(METRICS): text}, (403,)),
        OPENAPI: ("openapi", "This document", {_JSON: {"type": "object", "required": ["openapi"]}}, ()),
    }
    return {
        path: {"get": _operation(name, summary, _answers(200, content) | _errors(400, 401, *more, 503))}
        for path, (name, summary, content, more) in of.items()
    } | {
        "/": {"get": _operation("root", "The way to the feeds", _answers(307) | _errors(400, 401, 503))},
        LOGIN: {"get": _operation("login", "Asks a browser for the password", _answers(303) | _errors(400, 401, 503))},
        "/favicon.ico": {
            "get": _operation("icon", "The icon", _answers(200, {"image/svg+xml": text}) | _errors(304, 400, 401, 503))
        },
        "/static/{file}": {
            "parameters": [_parameter("file", "path", TEXT, "as a page names it")],
            "get": _operation(
                "static",
                "Style, script and icon of the pages",
                _answers(200, dict.fromkeys(("text/javascript", "text/css", "image/svg+xml"), text))
                | _errors(304, 400, 401, 404, 503),
            ),
        },
    }


def _operation(
    name: str,
    summary: str,
    responses: Mapping[str, Any],
    *,
    parameters: Iterable[Schema] = (),
    security: list[dict[str, list[str]]] | None = None,
    body: Mapping[str, Schema] | None = None,
    needs_body: bool = True,
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "security": _ANYBODY if security is None else security,
        "responses": {status: responses[status] for status in sorted(responses)},
    }
    if found := list(parameters):
        made["parameters"] = found
    if body:
        made["requestBody"] = {"required": needs_body, "content": _content(body)}
    return made


def _answers(status: int, content: Mapping[str, Schema] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _DESCRIPTIONS[status]}
    if content:
        answer["content"] = _content(content)
    return {str(status): answer}


def _errors(*statuses: int) -> dict[str, Any]:
    """Problems; what is below 400 has no body."""
    found: dict[str, Any] = {}
    for status in statuses:
        found |= _answers(status, {PROBLEM: ref("Problem")} if status >= HTTPStatus.BAD_REQUEST else None)
    return found


def _content(content: Mapping[str, Schema]) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type, schema in content.items()}


def _query(name: str, schema: Schema, text: str) -> Schema:
    return _parameter(name, "query", schema, text)


def _parameter(name: str, place: str, schema: Schema, text: str) -> Schema:
    return {"name": name, "in": place, "required": place == "path", "description": text, "schema": schema}


def _plain(form: Form) -> str:
    return _bare(form.media_type)


def _bare(media_type: str) -> str:
    return media_type.partition(";")[0]
