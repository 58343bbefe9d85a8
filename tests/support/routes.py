"""Every route of the HTTP side, those of the kernel and of the features, and their OpenAPI document."""

from functools import cache
from typing import Any

from smartfeeds.app.site import feed_forms, http_sides
from smartfeeds.http import routes

# A route of a feature takes the place of that of the kernel.
TABLE = tuple(
    {
        (route.method, route.path): route
        for route in (*routes.TABLE, *(route for side in http_sides() for route in side.routes))
    }.values()
)


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, made once. Callers must not change it."""
    return routes.document(http_sides(), feed_forms())
