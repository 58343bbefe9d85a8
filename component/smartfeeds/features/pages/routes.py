"""The pages that all feeds share, and what they consist of, by their paths."""

from dataclasses import dataclass

from smartfeeds.core import urls
from smartfeeds.features.pages import (
    api_docs,
    image_requests,
    outlines,
    river_http,
    search,
    site_files,
    static_files,
    theme,
)
from smartfeeds.features.pages.look import SiteLook
from smartfeeds.features.pages.river_page import RiverPages
from smartfeeds.features.pages.schemas import SCHEMAS
from smartfeeds.features.pages.writer import HtmlWriter
from smartfeeds.http.negotiation import ATOM, JSON
from smartfeeds.http.side import HttpSide, Route, SiteTools


@dataclass(frozen=True, slots=True)
class PageHandlers:
    """The objects that hold the handlers."""

    rivers: river_http.Rivers
    searches: search.Searches
    outlines: outlines.Outlines
    api_docs: api_docs.ApiDocs
    images: image_requests.Images
    themes: theme.Themes


def _handlers(tools: SiteTools) -> PageHandlers:
    links, fetch = tools.parts.get(SiteLook).image_links, tools.parts.get(image_requests.ImageFetcher).fetch
    return PageHandlers(
        river_http.Rivers(tools.handle, tools.domain, RiverPages(tools.domain)),
        search.Searches(tools.handle, tools.domain),
        outlines.Outlines(tools.handle, tools.perform, tools.domain, tools.bodies),
        api_docs.ApiDocs(tools.openapi),
        image_requests.Images(links, fetch, tools.now_us),
        theme.Themes(tools.bodies),
    )


# fmt: off
_ROUTES: tuple[Route[PageHandlers], ...] = (
    Route("GET", f"{urls.IMAGES}{{digest}}", "images", image_requests.GET_IMAGE, lambda h: h.images.get),
    Route("GET", urls.DOCS, "docs", api_docs.GET_DOCS, lambda h: h.api_docs.get),
    Route("GET", "/", "river", river_http.GET_RIVER, lambda h: h.rivers.get),
    Route("GET", "/river.json", "river", river_http.river_document(JSON), lambda h: h.rivers.get),
    Route("GET", "/river.atom", "river", river_http.river_document(ATOM), lambda h: h.rivers.get),
    Route("GET", "/search", "search", search.SEARCH_FEEDS, lambda h: h.searches.get),
    Route("GET", f"{urls.OUTLINE}{{name}}/", "outline", outlines.OUTLINE_PAGE, lambda h: h.outlines.show),
    Route("POST", f"{urls.OUTLINE}{{name}}/", "outline", outlines.OUTLINE_MOVE, lambda h: h.outlines.move),
    Route("POST", urls.THEME, "theme", theme.CHOOSE_THEME, lambda h: h.themes.choose),
    Route("GET", urls.MANIFEST, "static", site_files.GET_MANIFEST, lambda _: site_files.get_manifest),
    Route("GET", urls.OPENSEARCH, "static", site_files.GET_OPENSEARCH, lambda _: site_files.get_opensearch),
    Route("GET", urls.ROBOTS, "static", site_files.GET_ROBOTS, lambda _: site_files.get_robots),
    Route("GET", "/favicon.ico", "static", static_files.GET_ICON, lambda _: static_files.get_icon),
    Route("GET", f"{urls.STATIC}{{file}}", "static", static_files.GET_FILE, lambda _: static_files.get_static),
)
# fmt: on
HTTP = HttpSide(_ROUTES, _handlers, pages=HtmlWriter, schemas=SCHEMAS)
