"""Administration over HTTP for programs. The pages for browsers are in `tables.py`."""

from smartfeeds.features.administration import http
from smartfeeds.http.side import HttpSide, Route, SiteTools


def _handlers(tools: SiteTools) -> http.Administration:
    return http.Administration(tools.handle, tools.perform, tools.domain, tools.bodies)


# fmt: off
_ROUTES: tuple[Route[http.Administration], ...] = (
    Route("PATCH", "/feeds/{name}/", "feed", http.PATCH_FEED, lambda h: h.configure),
    Route("GET", "/options/{name}/", "options", http.GET_OPTIONS, lambda h: h.get_options),
    Route("GET", "/statistics", "statistics", http.GET_STATISTICS, lambda h: h.statistics),
)
# fmt: on
HTTP = HttpSide(_ROUTES, _handlers)
