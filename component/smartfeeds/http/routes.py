"""The routes of the kernel: every method and path, its operation and its handler (`http.side`)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from smartfeeds.core import urls
from smartfeeds.http import entries, feed_list, feeds, health, openapi, publishing, requirements
from smartfeeds.http.forms import FeedForms
from smartfeeds.http.negotiation import HTML
from smartfeeds.http.router import Handler
from smartfeeds.http.side import HttpSide, Route


@dataclass(frozen=True, slots=True)
class Handlers:
    """The objects that hold the handlers. `pull` chooses between a page, an event stream and a complete feed."""

    pull: Handler
    lists: feed_list.Lists
    entries: entries.Entries
    publishing: publishing.Publishing
    requirements: requirements.Requirements
    health: health.Health
    openapi: openapi.OpenApiDocument


# fmt: off
TABLE: tuple[Route[Handlers], ...] = (
    Route("GET", "/feeds", "feeds", feed_list.LIST_REDIRECT, lambda _: feed_list.redirect),
    Route("GET", "/feeds/", "feeds", feed_list.LIST, lambda h: h.lists.get),
    Route("GET", "/feeds.json", "feeds", feed_list.JSON_LIST, lambda h: h.lists.get),
    Route("GET", "/feeds.opml", "feeds", feed_list.OPML_LIST, lambda h: h.lists.get),
    Route("GET", "/feeds/{name}/", "feed", feeds.PULL, lambda h: h.pull),
    Route("PUT", "/feeds/{name}/", "feed", publishing.CREATE_FEED, lambda h: h.publishing.create_feed),
    Route("DELETE", "/feeds/{name}/", "feed", publishing.DELETE_FEED, lambda h: h.publishing.delete_feed),
    Route("GET", "/feeds/{name}.{suffix}", "feed", feeds.DOCUMENT, lambda h: h.pull),
    Route("GET", "/feeds/{name}", "feed", feeds.FEED_REDIRECT, lambda _: feeds.redirect),
    Route("GET", "/entries/{name}/{id}", "entries", entries.GET_ITEM, lambda h: h.entries.get),
    Route("PUT", "/entries/{name}/{id}", "entries", publishing.PUT_ITEM, lambda h: h.publishing.publish_entry),
    Route("PATCH", "/entries/{name}/{id}", "entries", publishing.MOVE_ITEM, lambda h: h.publishing.move),
    Route("DELETE", "/entries/{name}/{id}", "entries", publishing.RETRACT_ITEM, lambda h: h.publishing.retract),
    Route("POST", "/entries/{name}/", "entries", publishing.POST_ITEM, lambda h: h.publishing.publish_entry),
    Route("DELETE", "/entries/{name}/", "entries", publishing.PURGE, lambda h: h.publishing.purge),
    Route("GET", f"{urls.ABOUT}{{name}}/", "about", requirements.GET_REQUIREMENTS, lambda h: h.requirements.get),
    Route("GET", "/healthz", "healthz", health.ALIVE, lambda h: h.health.alive),
    Route("GET", "/readyz", "readyz", health.READY, lambda h: h.health.ready),
    Route("GET", "/metrics", "metrics", health.GET_METRICS, lambda h: h.health.metrics),
    Route("GET", urls.OPENAPI, "openapi", openapi.OPENAPI, lambda h: h.openapi.get),
)
# fmt: on


def document(sides: Iterable[HttpSide[Any]], forms: FeedForms) -> dict[str, Any]:
    """Returns the OpenAPI document of the kernel's table and of the features. Only a service with pages answers with
    HTML."""
    sides = tuple(sides)
    has_pages = any(side.pages is not None for side in sides)
    routes = (*TABLE, *(route for side in sides for route in side.routes))
    described = [
        (each.method, each.path, each.operation.with_forms(forms)) for each in routes if each.operation.described
    ]
    if not has_pages:
        described = [(method, path, each.without(HTML.bare_type)) for method, path, each in described]
    schemas = {name: schema for side in sides for name, schema in side.schemas.items()}
    return openapi.document(described, forms.suffixes, schemas)
