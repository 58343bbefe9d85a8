"""The HTTP side of a part of the service, as a value: its routes, and the objects that hold their handlers.

The kernel has one, and so has each feature. The router, and the OpenAPI document, are made from all of them. A new
route needs an `Operation` and a handler in its own module, and a line in the table of its part. The order of the routes
does not matter. A feature may serve a method and path of the kernel in its place.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from smartfeeds.core.limits import Quota
from smartfeeds.formats.representation import Representation
from smartfeeds.http.authentication import Authenticator, NobodyKnown
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import FeedLinks
from smartfeeds.http.feed_list import GetList
from smartfeeds.http.forms import FeedForm, FeedForms
from smartfeeds.http.openapi_schemas import Schema
from smartfeeds.http.operations import Operation
from smartfeeds.http.page_writer import NoPages, PageWriter
from smartfeeds.http.paths import PathTemplate
from smartfeeds.http.publishing import ReadItem
from smartfeeds.http.replies import Reply
from smartfeeds.http.router import Handler, PathResource
from smartfeeds.parts import Parts
from smartfeeds.service.answers import Handle

H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Backend:
    """The service behind the site. `handle` answers requests, `domain` is its address, `now_us` returns microseconds.
    `bodies` reads the bodies of requests, within its limits. `parts` has what features run. `forms` are the
    representations of feeds."""

    handle: Handle
    domain: str
    now_us: Callable[[], int]
    bodies: BodyReader
    parts: Parts
    forms: FeedForms


@dataclass(frozen=True, slots=True)
class SiteTools(Backend):
    """The tools of handlers. `perform` answers requests that change something, which are finished even if their client
    disconnects. `authenticator` recognises users. `publish` publishes the item that its second parameter reads of a
    request. `openapi` returns the OpenAPI document. `behind_proxies` counts held requests (`http.feeds.counted`)."""

    perform: Handle
    authenticator: Authenticator
    publish: Callable[[HttpCall, ReadItem], Awaitable[Reply]]
    openapi: Callable[[], Mapping[str, Any]]
    behind_proxies: Quota


@dataclass(frozen=True, slots=True)
class Route(Generic[H]):
    """A line of a table. With the prefix `http_`, `metric` labels its requests in the metrics. `handler` chooses the
    handler from the object that has those of its part."""

    method: str
    path: str
    metric: str
    operation: Operation
    handler: Callable[[H], Handler]


# Makes an authenticator of the service, the reader of bodies, the address of the service, and what features run.
MakeAuthenticator = Callable[[Handle, BodyReader, str, Parts], Authenticator]


@dataclass(frozen=True, slots=True)
class HttpSide(Generic[H]):
    """The routes of a part, and the function that makes the object with their handlers.

    One feature may have an `authenticator`, and one may make `pages`, of the service, its address and the
    representations of feeds. `links` adds to the links of documents; its parameters are those of the parts before, and
    what features run. `forms` are representations of a feed. `lists` has representations of the list of feeds, each
    with its handler. `schemas` are those of its bodies by name.
    """

    routes: tuple[Route[H], ...]
    handlers: Callable[[SiteTools], H]
    authenticator: MakeAuthenticator | None = None
    links: Callable[[FeedLinks, Parts], FeedLinks] | None = None
    pages: Callable[[Handle, str, FeedForms], PageWriter] | None = None
    forms: tuple[FeedForm, ...] = ()
    lists: Mapping[Representation, Callable[[H], GetList]] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)


def authenticator_of(
    sides: Iterable[HttpSide[Any]], handle: Handle, bodies: BodyReader, domain: str, parts: Parts
) -> Authenticator:
    """Returns what recognises users: that of the feature that has one."""
    makers = [side.authenticator for side in sides if side.authenticator is not None]
    return makers[0](handle, bodies, domain, parts) if makers else NobodyKnown()


def links_of(sides: Iterable[HttpSide[Any]], parts: Parts) -> FeedLinks:
    """Returns what the documents of every feed name."""
    links = FeedLinks()
    for side in sides:
        if side.links is not None:
            links = side.links(links, parts)
    return links


def page_writer_of(sides: Iterable[HttpSide[Any]], handle: Handle, domain: str, forms: FeedForms) -> PageWriter:
    """Returns what writes pages: that of the feature that has one."""
    makers = [side.pages for side in sides if side.pages is not None]
    return makers[0](handle, domain, forms) if makers else NoPages()


def resources(
    parts: Iterable[tuple[tuple[Route[Any], ...], Any]], suffixes: Collection[str]
) -> tuple[PathResource, ...]:
    """Returns the resources of the routes of several parts, each with the object that has its handlers. Of routes with
    one method and path, the last is taken. `suffixes` are those of documents."""
    by_path: dict[str, PathResource] = {}
    for routes, handlers in parts:
        for route in routes:
            if route.path not in by_path:
                by_path[route.path] = PathResource(PathTemplate(route.path, suffixes), f"http_{route.metric}")
            by_path[route.path].methods[route.method] = (route.operation, route.handler(handlers))
    return tuple(by_path.values())
