"""Makes the site from the routes of the kernel and of all features. A service without HTTP does not import it, nor
aiohttp's server."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from smartfeeds.app.config import Settings
from smartfeeds.app.formats import FORMATS
from smartfeeds.app.sides import all_resources
from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.features import FEATURES
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.forms import FeedForms
from smartfeeds.http.health import Health
from smartfeeds.http.resources import side_of
from smartfeeds.http.side import Backend, HttpSide
from smartfeeds.http.site import Site
from smartfeeds.parts import Parts
from smartfeeds.service.answers import Handle
from smartfeeds.telemetry import metrics_text, observe_request
from smartfeeds.xmpp.parsing import shape_fault


def http_sides() -> list[HttpSide[Any]]:
    """Returns what the features serve over HTTP, and the lists."""
    resources = all_resources()
    return [
        *map(side_of, resources),
        *(feature.shows(resources) for feature in FEATURES if feature.shows is not None),
        *(feature.http() for feature in FEATURES if feature.http is not None),
    ]


def feed_forms(sides: Sequence[HttpSide[Any]] | None = None) -> FeedForms:
    """Returns the representations of feeds: those of the kernel, of all formats and of `sides`, which are those of all
    features if a caller has not made them."""
    sides = http_sides() if sides is None else sides
    others = [form for side in sides for form in side.forms]
    return FeedForms.of(FORMATS.values(), others, [form for side in sides for form in side.lists])


def make_site(
    settings: Settings,
    handle: Handle,
    clock: Callable[[], int],
    parts: Parts,
    unready: Callable[[], Awaitable[dict[str, str]]],
    max_request_bytes: int,
) -> Site:
    """Returns the site of a service. `unready` returns what keeps it from being ready."""
    health = Health(unready, metrics_text, parse_networks(settings.http.metrics_from))
    bodies = BodyReader(max_request_bytes, settings.http.first_request_s, shape_fault)
    sides = http_sides()
    backend = Backend(handle, settings.component.jid, clock, bodies, parts, feed_forms(sides))
    return Site(settings.http, backend, health, observe_request, sides)
