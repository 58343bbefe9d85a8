"""`/docs`: the OpenAPI document as a page, with every operation, schema and a command for curl.

The page is made of the document alone, so it cannot describe other routes than programs read there.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from shlex import quote
from typing import Any, Final

from smartfeeds.core.urls import OPENAPI
from smartfeeds.features.pages.frame import Frame, frame_of, page_reply
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.negotiation import HTML
from smartfeeds.http.openapi_schemas import Schema
from smartfeeds.http.operations import Operation
from smartfeeds.http.replies import Reply
from smartfeeds.texts import N_

GET_DOCS = Operation("docs", "This documentation as a page", {200: {HTML.bare_type: {"type": "string"}}})

_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_REF: Final = "#/components/schemas/"
# Constraints of a schema in words, in the order in which they are shown.
_BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches {}",
}
# A bound of at least this is that of the database, which nobody reaches. The OpenAPI document has it for programs.
_ENDLESS: Final = 10**15
_ADMINISTRATION: Final = (
    "consumers",
    "members",
    "mirrors",
    "options",
    "statistics",
    "subscriptions",
    "tokens",
)
_GROUPS: Final = {
    "feeds": N_("Feeds"),
    "entries": N_("Entries"),
    "conflicts": N_("Conflicts"),
    **dict.fromkeys(_ADMINISTRATION, N_("Administration")),
}
_OTHERS: Final = N_("Other addresses")


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema in words. `ref` is the name of the schema that it refers to, "" if it refers to none."""

    text: str
    ref: str = ""


@dataclass(frozen=True, slots=True)
class OperationText:
    """An operation as the page shows it. `parameters` are those of the document, `body` and `responses` map a media
    type to its schema. `curl` is a command for a shell.
    """

    name: str
    method: str
    path: str
    summary: str
    needs_token: bool
    parameters: tuple[tuple[Schema, SchemaText], ...]
    body_required: bool
    body: tuple[tuple[str, SchemaText], ...]
    responses: tuple[tuple[str, str, tuple[tuple[str, SchemaText], ...]], ...]
    curl: str


class ApiDocs:
    """Serves the page. `content` returns the OpenAPI document."""

    def __init__(self, content: Callable[[], Mapping[str, Any]]) -> None:
        self._content = content
        # A page takes some milliseconds. It depends on the frame, of which readers without a session have few, and on
        # the address of the site.
        self._page = lru_cache(16)(self._render)

    async def get(self, call: HttpCall) -> Reply:
        """The page."""
        return call.zipped(page_reply(self._page(frame_of(call), call.site_url)))

    def _render(self, frame: Frame, site_url: str) -> bytes:
        content = self._content()
        groups: dict[str, list[OperationText]] = {title: [] for title in (*_GROUPS.values(), _OTHERS)}
        for operation in operations_of(content, site_url):
            segment = operation.path.split("/")[1].partition(".")[0]
            groups[_GROUPS.get(segment, _OTHERS)].append(operation)
        schemas = content["components"]["schemas"]
        return frame.page(
            "api.html",
            groups={title: operations for title, operations in groups.items() if operations},
            schemas=[
                (name, schema.get("description", ""), tuple(_members(schema)), _dump(schema))
                for name, schema in schemas.items()
            ],
            description=content["info"]["description"],
            site_url=site_url,
            openapi=OPENAPI,
        )


def operations_of(content: Mapping[str, Any], site_url: str) -> Iterator[OperationText]:
    """Yields the operations of an OpenAPI document in its order."""
    for path, item in content["paths"].items():
        for method in _METHODS:
            if method in item:
                yield _operation(path, method.upper(), item[method], item.get("parameters", []), site_url)


def _operation(path: str, method: str, written: Schema, shared: list[Schema], site_url: str) -> OperationText:
    body = written.get("requestBody", {})
    return OperationText(
        name=written["operationId"],
        method=method,
        path=path,
        summary=written["summary"],
        needs_token={} not in written["security"],
        parameters=tuple((row, describe(row["schema"])) for row in (*shared, *written.get("parameters", []))),
        body_required=body.get("required", False),
        body=_content(body),
        responses=tuple((status, row["description"], _content(row)) for status, row in written["responses"].items()),
        curl=_curl(path, method, written, site_url),
    )


def _content(holder: Schema) -> tuple[tuple[str, SchemaText], ...]:
    return tuple((kind, describe(row["schema"])) for kind, row in holder.get("content", {}).items())


def _curl(path: str, method: str, written: Schema, site_url: str) -> str:
    """The command: variables of the path are names in capitals, the token is a variable of the shell."""
    address = site_url + _VARIABLE.sub(lambda match: match[1].upper(), path)
    parts = ["curl"]
    if method != "GET":
        parts.append(f"-X {method}")
    if {} not in written["security"]:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    kinds = list(written.get("requestBody", {}).get("content", {}))
    if kinds:
        parts.append(f"-H {quote(f'Content-Type: {kinds[0]}')} --data-binary @FILE")
    return " ".join([*parts, quote(address)])


def describe(schema: Schema) -> SchemaText:
    """Returns a schema in words, such as "array of text, at least 1 items"."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        return SchemaText(name, name)
    if "const" in schema:
        return SchemaText(json.dumps(schema["const"]))
    if "enum" in schema:
        return SchemaText(", ".join(map(json.dumps, schema["enum"])))
    for joint in ("anyOf", "oneOf", "allOf"):
        if joint in schema:
            parts = [describe(part) for part in schema[joint]]
            return SchemaText(
                " or ".join(part.text for part in parts), next((part.ref for part in parts if part.ref), "")
            )
    kinds = schema.get("type", "any value")
    text, inner = (" or ".join(kinds) if isinstance(kinds, list) else kinds), SchemaText("")
    if kinds == "array" and "items" in schema:
        inner = describe(schema["items"])
        text = f"array of {inner.text}"
    words = [text, *filter(None, [schema.get("format")])]
    words += [phrase.format(schema[key]) for key, phrase in _BOUNDS.items() if key in schema and _is_bound(schema[key])]
    return SchemaText(", ".join(words), inner.ref)


def _is_bound(value: object) -> bool:
    return not isinstance(value, int) or value < _ENDLESS


def _members(schema: Schema) -> Iterator[tuple[str, SchemaText, bool, str]]:
    """Yields the members of an object: name, schema, whether it is required, and what it is."""
    for name, member in schema.get("properties", {}).items():
        yield name, describe(member), name in schema.get("required", ()), member.get("description", "")


def _dump(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False)
