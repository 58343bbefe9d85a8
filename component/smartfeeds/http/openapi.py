"""The OpenAPI 3.1 document of the HTTP side, written from the table of routes (SF-112).

The statuses that several operations share follow from the fields of an operation. `tests/http/test_openapi.py` asks the
running service for every documented response and fails on an undocumented one.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any

from smartfeeds import __version__
from smartfeeds.formats.json_text import dump_json
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import PROBLEM
from smartfeeds.http.negotiation import JSON, PLAIN
from smartfeeds.http.openapi_schemas import JID, SCHEMAS, TEXT, Schema, ref
from smartfeeds.http.operations import IF_NONE_MATCH, METHODS, NAME_TEXT, Content, Operation, Parameter
from smartfeeds.http.paths import PathTemplate
from smartfeeds.http.replies import Reply

OPENAPI = Operation(
    "openapi",
    "This document",
    {200: {JSON.bare_type: {"type": "object", "required": ["openapi"]}}},
    cors=True,
)
_ANONYMOUS: list[dict[str, list[str]]] = [{}, {"token": []}]
_TOKEN: list[dict[str, list[str]]] = [{"token": []}]
# The variables of the path templates.
_VARIABLES: Mapping[str, Parameter] = {
    "name": Parameter("name", NAME_TEXT, "name of the feed", "path"),
    "id": Parameter("id", NAME_TEXT, "id of the item", "path"),
    "jid": Parameter("jid", JID, "XMPP address", "path"),
    "token": Parameter("token", NAME_TEXT, "id of the token", "path"),
    "digest": Parameter("digest", TEXT, "digest of the address, as the pages contain it", "path"),
    "file": Parameter("file", TEXT, "file name as the pages link to it", "path"),
}
_DESCRIPTIONS: Mapping[int, str] = {
    200: "success",
    201: "created",
    202: "accepted; the callback is asked before anything changes",
    204: "done, without a body",
    206: "the requested part",
    303: "done; Location has the next page",
    304: "the representation that the client has is current",
    307: "Location has the address",
    308: "Location has the permanent address",
    400: "the request is malformed; the detail says where",
    401: "a token is missing, or the token is not valid",
    403: "the caller does not have the right",
    404: "the feed, item or page does not exist, or the caller may not know that it exists",
    406: "none of the accepted media types is available; for options, a value is not allowed",
    408: "the body did not arrive in time",
    409: "it exists already, or has changed since the client read it",
    410: "the item was deleted; the body is its tombstone",
    412: "the item is not in the state that the request expects; read it again",
    413: "the body is too large",
    416: "the file has no such part",
    415: "the media type of the body is not supported",
    429: "too many requests; retry later",
    502: "another server does not provide what this response needs",
    500: "the request is no proper call; the body is a fault",
    503: "the service is temporarily unavailable; retry later",
}


def document(
    routes: Iterable[tuple[str, str, Operation]], suffixes: Iterable[str], schemas: Mapping[str, Schema] | None = None
) -> dict[str, Any]:
    """The document for routes given as (method, path, operation), sorted by their paths. `suffixes` are those of
    documents, and `schemas` those of features, by name."""
    suffix = Parameter("suffix", {"enum": list(suffixes)}, "format of the document", "path")
    known = {**_VARIABLES, "suffix": suffix}
    paths: dict[str, dict[str, Any]] = {}
    for method, path, operation in sorted(routes, key=lambda route: (route[1], METHODS.index(route[0]))):
        variables = PathTemplate(path).variables
        if path not in paths:
            shared = {"parameters": [_parameter(known[name]) for name in variables]}
            paths[path] = shared if variables else {}
        paths[path][method.lower()] = _operation(operation, variables)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "smartfeeds",
            "version": __version__,
            "license": {"name": "MIT", "identifier": "MIT"},
            "summary": "Feeds whose followers can prove that they have everything",
            "description": (
                "Every error is a problem (RFC 9457). An unexpected error has the status 500 and an incident number. "
                "Every GET is also available as HEAD. The address of a feed without its last slash redirects to the "
                "address with it (308). In names a slash stands for itself or is written %2F."
            ),
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**SCHEMAS, **(schemas or {})}.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class OpenApiDocument:
    """Serves the document that `content` returns. It is made once, for the first request: that takes 7 ms."""

    def __init__(self, content: Callable[[], Mapping[str, Any]]) -> None:
        self._content = content

    @cached_property
    def _reply(self) -> Reply:
        headers = {"Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "*"}
        return Reply(dump_json(self._content()), JSON.bare_type, headers=headers)

    async def get(self, call: HttpCall) -> Reply:
        """The document itself."""
        return call.zipped(self._reply)


def _operation(operation: Operation, variables: tuple[str, ...]) -> dict[str, Any]:
    responses = {status: _response(status, content) for status, content in operation.answers.items()}
    problem: Content = {PROBLEM: ref("Problem")}
    errors: Content = {PLAIN: {"type": "string"}} if operation.plain_errors else problem
    for status in _error_statuses(operation, variables):
        # A redirect or 304 has no body.
        responses[status] = _response(status, errors if status >= HTTPStatus.BAD_REQUEST else {})
    if operation.plain_errors:
        # The address of a request without a readable Host header is not known.
        responses[400] = _response(400, {**errors, **problem})
    written: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "security": _TOKEN if operation.needs_token else _ANONYMOUS,
        "responses": {str(status): responses[status] for status in sorted(responses)},
    }
    if operation.parameters:
        written["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.body:
        written["requestBody"] = {"required": operation.body_required, "content": _content(operation.body)}
    return written


def _error_statuses(operation: Operation, variables: tuple[str, ...]) -> set[int]:
    # Any request may have an unreadable Host header or an unknown token, and the store may be away.
    statuses = {400, 401, 503, *operation.errors}
    if variables:
        statuses.add(404)
    if operation.scope is not None:
        statuses.add(403)
    if operation.body:
        statuses |= {408, 413, 415}
    if IF_NONE_MATCH in operation.parameters and not operation.body:
        statuses.add(304)
    return statuses


def _response(status: int, content: Content) -> dict[str, Any]:
    described: dict[str, Any] = {"description": _DESCRIPTIONS[status]}
    if content:
        described["content"] = _content(content)
    return described


def _content(content: Content) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type, schema in content.items()}


def _parameter(parameter: Parameter) -> Schema:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required or parameter.place == "path",
        "description": parameter.text,
        "schema": parameter.schema,
    }
