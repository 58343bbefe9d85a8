"""The table of routes: every method and path of the HTTP side, what it does and which handler does it.

The router and the OpenAPI document are both made from this table. A new route needs an `Operation` and a handler in its
own module, and one line here. The order matters only for paths that fit several templates: the first one is taken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from smartfeeds.core.urls import DOCS
from smartfeeds.http import conflicts, entries, feeds, health, images, lists, openapi, publishing
from smartfeeds.http import negotiation as n
from smartfeeds.http.look import IMAGES
from smartfeeds.http.operations import Operation
from smartfeeds.http.paths import PathTemplate
from smartfeeds.http.router import Handler, Resource
from smartfeeds.http.web import api_docs
from smartfeeds.http.web import static_files as static


@dataclass(frozen=True, slots=True)
class Handlers:
    """The objects that hold the handlers. `pull` chooses between a page, an event stream and a complete feed."""

    pull: Handler
    lists: lists.Lists
    entries: entries.Entries
    publishing: publishing.Publishing
    conflicts: conflicts.Conflicts
    health: health.Health
    openapi: openapi.OpenApiDocument
    api_docs: api_docs.ApiDocs
    images: images.Images


@dataclass(frozen=True, slots=True)
class Route:
    """A line of the table. With the prefix `http_`, `metric` labels its requests in the metrics."""

    method: str
    path: str
    metric: str
    operation: Operation
    handler: Callable[[Handlers], Handler]


# fmt: off
TABLE: tuple[Route, ...] = (
    Route("GET", "/feeds", "feeds", lists.LIST_REDIRECT, lambda h: h.lists.redirect),
    Route("GET", "/feeds/", "feeds", lists.LIST, lambda h: h.lists.get),
    Route("GET", "/feeds.json", "feeds", lists.list_document(n.JSON), lambda h: h.lists.get),
    Route("GET", "/feeds.opml", "feeds", lists.list_document(n.OPML), lambda h: h.lists.get),
    Route("GET", "/feeds.nno", "feeds", lists.list_document(n.NNO), lambda h: h.lists.get),
    Route("GET", "/feeds/{name}/", "feed", feeds.PULL, lambda h: h.pull),
    Route("PUT", "/feeds/{name}/", "feed", publishing.CREATE_FEED, lambda h: h.publishing.create_feed),
    Route("DELETE", "/feeds/{name}/", "feed", publishing.DELETE_FEED, lambda h: h.publishing.delete_feed),
    Route("GET", "/feeds/{name}.{suffix}", "feed", feeds.DOCUMENT, lambda h: h.pull),
    Route("GET", "/feeds/{name}", "feed", feeds.FEED_REDIRECT, lambda _: feeds.redirect),
    Route("GET", "/entries/{name}/{id}", "entries", entries.GET_ITEM, lambda h: h.entries.get),
    Route("PUT", "/entries/{name}/{id}", "entries", publishing.PUT_ITEM, lambda h: h.publishing.publish),
    Route("DELETE", "/entries/{name}/{id}", "entries", publishing.RETRACT_ITEM, lambda h: h.publishing.retract),
    Route("POST", "/entries/{name}/", "entries", publishing.POST_ITEM, lambda h: h.publishing.publish),
    Route("DELETE", "/entries/{name}/", "entries", publishing.PURGE, lambda h: h.publishing.purge),
    Route("GET", "/conflicts/{name}/", "conflicts", conflicts.LIST_CONFLICTS, lambda h: h.conflicts.get),
    Route("GET", "/conflicts/{name}/{id}", "conflicts", conflicts.GET_CONFLICT, lambda h: h.conflicts.get),
    Route("POST", "/conflicts/{name}/{id}", "conflicts", conflicts.RESOLVE_CONFLICT, lambda h: h.conflicts.post),
    Route("GET", f"{IMAGES}{{digest}}", "images", images.GET_IMAGE, lambda h: h.images.get),
    Route("GET", "/healthz", "healthz", health.ALIVE, lambda h: h.health.alive),
    Route("GET", "/readyz", "readyz", health.READY, lambda h: h.health.ready),
    Route("GET", "/metrics", "metrics", health.GET_METRICS, lambda h: h.health.metrics),
    Route("GET", api_docs.OPENAPI, "openapi", openapi.OPENAPI, lambda h: h.openapi.get),
    Route("GET", DOCS, "docs", api_docs.GET_DOCS, lambda h: h.api_docs.get),
    Route("GET", "/", "root", static.ROOT, lambda _: static.get_root),
    Route("GET", static.LOGIN, "login", static.ASK_LOGIN, lambda _: static.get_login),
    Route("GET", "/favicon.ico", "static", static.GET_ICON, lambda _: static.get_icon),
    Route("GET", f"{static.STATIC}{{file}}", "static", static.GET_FILE, lambda _: static.get_static),
)
# fmt: on


def document() -> dict[str, Any]:
    """The OpenAPI document of the table."""
    return openapi.document((route.method, route.path, route.operation) for route in TABLE)


def resources(handlers: Handlers) -> tuple[Resource, ...]:
    """The table by paths, with its handlers."""
    by_path: dict[str, Resource] = {}
    for route in TABLE:
        if route.path not in by_path:
            by_path[route.path] = Resource(PathTemplate(route.path, feeds.SUFFIXES), f"http_{route.metric}")
        by_path[route.path].methods[route.method] = (route.operation, route.handler(handlers))
    return tuple(by_path.values())
