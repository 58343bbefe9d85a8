"""Administration over HTTP: every path, for programs and for browsers."""

from dataclasses import dataclass

from smartfeeds.features.administration import http, pages
from smartfeeds.http.side import HttpSide, Route, SiteTools


@dataclass(frozen=True, slots=True)
class AdminHandlers:
    """The handlers for programs, and those of the pages."""

    api: http.Administration
    pages: pages.WebAdmin


def _handlers(tools: SiteTools) -> AdminHandlers:
    common = (tools.handle, tools.perform, tools.domain, tools.bodies)
    return AdminHandlers(http.Administration(*common), pages.WebAdmin(*common, tools.now_us))


# fmt: off
_ROUTES: tuple[Route[AdminHandlers], ...] = (
    Route("PATCH", "/feeds/{name}/", "feed", http.PATCH_FEED, lambda h: h.api.configure),
    Route("GET", "/options/{name}/", "options", http.GET_OPTIONS, lambda h: h.api.get_options),
    Route("GET", "/statistics", "statistics", http.GET_STATISTICS, lambda h: h.api.statistics),
    Route("GET", "/admin/", "admin", pages.OVERVIEW, lambda h: h.pages.overview),
    Route("GET", "/admin/feeds/{name}/", "admin", pages.FEED, lambda h: h.pages.feed),
    Route("POST", "/admin/feeds/{name}/", "admin", pages.FEED_FORM, lambda h: h.pages.submit_feed),
)
# fmt: on
HTTP = HttpSide(_ROUTES, _handlers)
