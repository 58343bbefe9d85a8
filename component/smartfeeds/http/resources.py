"""The routes of lists: each list as JSON in pages (`service.resources`)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from smartfeeds.core.page import parse_number
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.negotiation import JSON
from smartfeeds.http.openapi_schemas import place_schema, ref
from smartfeeds.http.operations import WHOLE_NUMBER, Operation, Parameter
from smartfeeds.http.queries import read_flag, read_parameters, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.http.router import Handler
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.service.answers import Handle
from smartfeeds.service.resources import Action, ActionRoute, Caller, Resource, RowPage, read_rows

USUAL, MOST = 100, 500  # rows in a page
PRIVATE: Mapping[str, str] = {"Cache-Control": "no-store", "Vary": "Authorization, Cookie"}
_MAX = Parameter("max", WHOLE_NUMBER, "largest number of rows")
_AFTER = Parameter(
    "after", {"type": "string"}, "rows after this position, from the address in next; empty for the first"
)


def path_of(resource: Resource[Any], folder: str = "/") -> str:
    """Returns the path of a list, below a folder."""
    return f"{folder}{resource.name}/{'{name}/' if resource.of_node else ''}"


def side_of(resource: Resource[Any]) -> HttpSide[SiteTools]:
    """Returns the routes of a list and of its actions."""
    routes = []
    if resource.summary:
        operation = _operation(resource)
        routes.append(Route("GET", path_of(resource), resource.name, operation, partial(_get_handler, resource)))
    for action in resource.actions:
        if (route := action.route) is not None:
            path = path_of(resource) + (f"{{{route.subject[1]}}}" if route.subject[1] else "")
            handler = partial(_act_handler, action, route)
            routes.append(Route(route.method, path, resource.name, _operation_of(route), handler))
    return HttpSide(tuple(routes), lambda tools: tools)


def _operation_of(route: ActionRoute) -> Operation:
    answers = {status: {JSON.bare_type: dict(schema)} if schema else {} for status, schema in route.answers.items()}
    body = {JSON.bare_type: ref(route.body)} if route.body else {}
    return Operation(route.name, route.summary, answers, errors=route.errors, body=body, scope=TokenScope.ADMIN)


def _act_handler(action: Action, route: ActionRoute, tools: SiteTools) -> Handler:
    return partial(_act, action, route, tools)


async def _act(action: Action, route: ActionRoute, tools: SiteTools, call: HttpCall) -> Reply:
    """Performs an action. Raises FeedError, HttpError."""
    fields = await object_of(tools.bodies, call, (JSON.bare_type,), *route.members) if route.body else {}
    if route.subject[0]:
        fields[route.subject[0]] = call.subject
    outcome = await action.perform(caller_of(call, tools.perform, tools.domain), fields)
    status = next(iter(route.answers))
    if outcome.body is None:
        return Reply(status=status, headers=PRIVATE)
    return Reply(dump_json(outcome.body), JSON.media_type, status, headers=PRIVATE)


async def object_of(bodies: BodyReader, call: HttpCall, media_types: tuple[str, ...], *members: str) -> JsonObject:
    """The JSON object of a body, with at most these members, or with any. Raises FeedError, HttpError."""
    value = await bodies.json(call, media_types)
    if not isinstance(value, dict) or (members and not value.keys() <= set(members)):
        names = f" of {', '.join(members)}" if members else ""
        raise FeedError(Condition.BAD_REQUEST, f"the body is a JSON object{names}")
    return value


def _operation(resource: Resource[Any]) -> Operation:
    parameters = [_MAX, _AFTER]
    if resource.places is not None:
        parameters = [_MAX, replace(_AFTER, schema=place_schema(resource.places.pattern))]
    if resource.narrow is not None:
        parameters.append(Parameter(resource.narrow.name, {"enum": ["true"]}, resource.narrow.text))
    # A list with result sets answers 404 to a position that it does not have.
    errors = () if resource.places is not None else (404,)
    answers = {200: {JSON.bare_type: ref("Rows")}}
    name = f"list{resource.name.capitalize()}"
    return Operation(
        name, resource.summary, answers, errors=errors, parameters=tuple(parameters), scope=TokenScope.ADMIN
    )


def _get_handler(resource: Resource[Any], tools: SiteTools) -> Handler:
    return partial(_get, resource, tools)


async def _get(resource: Resource[Any], tools: SiteTools, call: HttpCall) -> Reply:
    """A page of the list. Raises FeedError."""
    names = ("max", "after", *((resource.narrow.name,) if resource.narrow is not None else ()))
    narrow = resource.narrow is not None and read_flag(call.query, resource.narrow.name)
    query = read_parameters(call.query, names)
    most = min(max(1, parse_number(query.get("max", str(USUAL)), "max")), MOST)
    caller = caller_of(call, tools.handle, tools.domain)
    page = await read_page(resource, caller, most, query.get("after", ""), narrow=narrow)
    head: JsonObject = {"count": len(page.rows)}
    if page.total is not None:
        head["totalItems"] = page.total
    if page.after:
        head["next"] = f"{call.site_url}{call.path}?{write_query({**query, 'after': page.after})}"
    return call.zipped(Reply(dump_json({**head, "items": list(page.rows)}), JSON.media_type, headers=PRIVATE))


def caller_of(call: HttpCall, handle: Handle, service: str) -> Caller:
    """Returns the user who sends a request."""
    return Caller(handle, call.actor, service, call.name)


async def read_page(resource: Resource[Any], caller: Caller, most: int, after: str, *, narrow: bool = False) -> RowPage:
    """Returns a page of a list behind a position that a client sends. Raises FeedError."""
    if after and resource.places is not None and re.fullmatch(resource.places.pattern, after, re.ASCII) is None:
        raise FeedError(Condition.BAD_REQUEST, "after is a position from the address of the next page")
    return await read_rows(resource, caller, most, after, narrow=narrow)
