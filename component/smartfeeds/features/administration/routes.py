"""Administration over HTTP: every path, for programs and for browsers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from smartfeeds.features.administration import http, pages
from smartfeeds.features.administration.page_sections import SECTIONS
from smartfeeds.http.router import Handler
from smartfeeds.http.side import HttpSide, Route, SiteTools


@dataclass(frozen=True, slots=True)
class AdminHandlers:
    """The handlers for programs, and those of the pages."""

    api: http.Administration
    pages: pages.WebAdmin


def _handlers(tools: SiteTools) -> AdminHandlers:
    common = (tools.handle, tools.perform, tools.domain, tools.bodies)
    return AdminHandlers(http.Administration(*common), pages.WebAdmin(*common, tools.now_us))


def _tables() -> Iterator[Route[AdminHandlers]]:
    """The pages of the web administration that are tables, and their forms."""
    for section in SECTIONS:
        yield Route("GET", section.path, "admin", section.get, partial(_show, section))
        if section.actions:
            yield Route("POST", section.path, "admin", section.post, partial(_submit, section))


def _show(section: pages.Section, handlers: AdminHandlers) -> Handler:
    return partial(handlers.pages.show, section)


def _submit(section: pages.Section, handlers: AdminHandlers) -> Handler:
    return partial(handlers.pages.submit, section)


# fmt: off
_ROUTES: tuple[Route[AdminHandlers], ...] = (
    Route("PATCH", "/feeds/{name}/", "feed", http.PATCH_FEED, lambda h: h.api.configure),
    Route("GET", "/options/{name}/", "options", http.GET_OPTIONS, lambda h: h.api.get_options),
    Route("GET", "/members/{name}/", "members", http.LIST_MEMBERS, lambda h: h.api.members),
    Route("PUT", "/members/{name}/{jid}", "members", http.PUT_MEMBER, lambda h: h.api.affiliate),
    Route("DELETE", "/members/{name}/{jid}", "members", http.DELETE_MEMBER, lambda h: h.api.disaffiliate),
    Route("GET", "/subscriptions/{name}/", "subscriptions", http.LIST_SUBSCRIPTIONS, lambda h: h.api.subscriptions),
    Route("PUT", "/subscriptions/{name}/{jid}", "subscriptions", http.SUBSCRIBE, lambda h: h.api.subscribe),
    Route("DELETE", "/subscriptions/{name}/{jid}", "subscriptions", http.UNSUBSCRIBE, lambda h: h.api.unsubscribe),
    Route("GET", "/tokens/", "tokens", http.LIST_TOKENS, lambda h: h.api.tokens),
    Route("POST", "/tokens/", "tokens", http.POST_TOKEN, lambda h: h.api.post_token),
    Route("DELETE", "/tokens/{token}", "tokens", http.DELETE_TOKEN, lambda h: h.api.delete_token),
    Route("POST", "/consumers/", "consumers", http.RETRY_CONSUMERS, lambda h: h.api.retry),
    Route("GET", "/mirrors/", "mirrors", http.LIST_MIRRORS, lambda h: h.api.mirrors),
    Route("GET", "/statistics", "statistics", http.GET_STATISTICS, lambda h: h.api.statistics),
    Route("GET", "/admin/", "admin", pages.OVERVIEW, lambda h: h.pages.overview),
    Route("GET", "/admin/feeds/{name}/", "admin", pages.FEED, lambda h: h.pages.feed),
    Route("POST", "/admin/feeds/{name}/", "admin", pages.FEED_FORM, lambda h: h.pages.submit_feed),
    *_tables(),
)
# fmt: on
HTTP = HttpSide(_ROUTES, _handlers)
