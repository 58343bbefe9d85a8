"""The routes of the kernel: every method and path, what it does and which handler does it (`http.side`)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from smartfeeds.core import urls
from smartfeeds.features.accounts import pages as sign_in
from smartfeeds.features.administration import http as admin
from smartfeeds.features.administration import pages as web_admin
from smartfeeds.features.administration.page_sections import SECTIONS
from smartfeeds.features.authoring import editor, micropub
from smartfeeds.features.pages import api_docs, outlines, search, theme
from smartfeeds.features.pages import image_requests as images
from smartfeeds.features.pages import river_http as river
from smartfeeds.features.pages import static_files as static
from smartfeeds.http import entries, feeds, health, lists, openapi, publishing, requirements
from smartfeeds.http import negotiation as n
from smartfeeds.http import stored_files as files
from smartfeeds.http.router import Handler
from smartfeeds.http.side import HttpSide, Route


@dataclass(frozen=True, slots=True)
class Handlers:
    """The objects that hold the handlers. `pull` chooses between a page, an event stream and a complete feed."""

    pull: Handler
    lists: lists.Lists
    rivers: river.Rivers
    searches: search.Searches
    entries: entries.Entries
    publishing: publishing.Publishing
    files: files.FileReplies
    micropub: micropub.Micropub
    outlines: outlines.Outlines
    requirements: requirements.Requirements
    health: health.Health
    openapi: openapi.OpenApiDocument
    api_docs: api_docs.ApiDocs
    admin: admin.Administration
    web_admin: web_admin.WebAdmin
    images: images.Images
    sign_in: sign_in.SignInPages
    themes: theme.Themes
    editor: editor.Editor


def _tables() -> Iterator[Route[Handlers]]:
    """The pages of the web administration that are tables, and their forms."""
    for section in SECTIONS:
        yield Route("GET", section.path, "admin", section.get, partial(_show, section))
        if section.actions:
            yield Route("POST", section.path, "admin", section.post, partial(_submit, section))


def _show(section: web_admin.Section, handlers: Handlers) -> Handler:
    return partial(handlers.web_admin.show, section)


def _submit(section: web_admin.Section, handlers: Handlers) -> Handler:
    return partial(handlers.web_admin.submit, section)


_GET_FILE = files.file_operation("getFile", "A file that belongs to a feed, or a part of it")


# fmt: off
TABLE: tuple[Route[Handlers], ...] = (
    Route("GET", "/feeds", "feeds", lists.LIST_REDIRECT, lambda _: lists.redirect),
    Route("GET", "/feeds/", "feeds", lists.LIST, lambda h: h.lists.get),
    Route("GET", "/feeds.json", "feeds", lists.list_document(n.JSON), lambda h: h.lists.get),
    Route("GET", "/feeds.opml", "feeds", lists.list_document(n.OPML), lambda h: h.lists.get),
    Route("GET", "/feeds.nno", "feeds", lists.list_document(n.NNO), lambda h: h.lists.get),
    Route("GET", "/feeds/{name}/", "feed", feeds.PULL, lambda h: h.pull),
    Route("PUT", "/feeds/{name}/", "feed", publishing.CREATE_FEED, lambda h: h.publishing.create_feed),
    Route("PATCH", "/feeds/{name}/", "feed", admin.PATCH_FEED, lambda h: h.admin.configure),
    Route("DELETE", "/feeds/{name}/", "feed", publishing.DELETE_FEED, lambda h: h.publishing.delete_feed),
    Route("GET", "/feeds/{name}.{suffix}", "feed", feeds.DOCUMENT, lambda h: h.pull),
    Route("GET", "/feeds/{name}", "feed", feeds.FEED_REDIRECT, lambda _: feeds.redirect),
    Route("GET", "/entries/{name}/{id}", "entries", entries.GET_ITEM, lambda h: h.entries.get),
    Route("PUT", "/entries/{name}/{id}", "entries", publishing.PUT_ITEM, lambda h: h.publishing.publish),
    Route("PATCH", "/entries/{name}/{id}", "entries", publishing.MOVE_ITEM, lambda h: h.publishing.move),
    Route("DELETE", "/entries/{name}/{id}", "entries", publishing.RETRACT_ITEM, lambda h: h.publishing.retract),
    Route("POST", "/entries/{name}/", "entries", publishing.POST_ITEM, lambda h: h.publishing.publish),
    Route("DELETE", "/entries/{name}/", "entries", publishing.PURGE, lambda h: h.publishing.purge),
    Route("GET", "/micropub/{name}", "micropub", micropub.QUERY, lambda h: h.micropub.query),
    Route("POST", "/micropub/{name}", "micropub", micropub.CREATE, lambda h: h.micropub.post),
    Route("POST", "/media/{name}", "micropub", micropub.MEDIA, lambda h: h.micropub.media),
    Route("GET", "/files/{name}/{id}", "files", _GET_FILE, lambda h: h.files.get),
    Route("GET", f"{urls.ABOUT}{{name}}/", "about", requirements.GET_REQUIREMENTS, lambda h: h.requirements.get),
    Route("GET", "/options/{name}/", "options", admin.GET_OPTIONS, lambda h: h.admin.get_options),
    Route("GET", "/members/{name}/", "members", admin.LIST_MEMBERS, lambda h: h.admin.members),
    Route("PUT", "/members/{name}/{jid}", "members", admin.PUT_MEMBER, lambda h: h.admin.affiliate),
    Route("DELETE", "/members/{name}/{jid}", "members", admin.DELETE_MEMBER, lambda h: h.admin.disaffiliate),
    Route("GET", "/subscriptions/{name}/", "subscriptions", admin.LIST_SUBSCRIPTIONS, lambda h: h.admin.subscriptions),
    Route("PUT", "/subscriptions/{name}/{jid}", "subscriptions", admin.SUBSCRIBE, lambda h: h.admin.subscribe),
    Route("DELETE", "/subscriptions/{name}/{jid}", "subscriptions", admin.UNSUBSCRIBE, lambda h: h.admin.unsubscribe),
    Route("GET", "/tokens/", "tokens", admin.LIST_TOKENS, lambda h: h.admin.tokens),
    Route("POST", "/tokens/", "tokens", admin.POST_TOKEN, lambda h: h.admin.post_token),
    Route("DELETE", "/tokens/{token}", "tokens", admin.DELETE_TOKEN, lambda h: h.admin.delete_token),
    Route("POST", "/consumers/", "consumers", admin.RETRY_CONSUMERS, lambda h: h.admin.retry),
    Route("GET", "/mirrors/", "mirrors", admin.LIST_MIRRORS, lambda h: h.admin.mirrors),
    Route("GET", "/statistics", "statistics", admin.GET_STATISTICS, lambda h: h.admin.statistics),
    Route("GET", "/admin/", "admin", web_admin.OVERVIEW, lambda h: h.web_admin.overview),
    *_tables(),
    Route("GET", "/admin/feeds/{name}/", "admin", web_admin.FEED, lambda h: h.web_admin.feed),
    Route("POST", "/admin/feeds/{name}/", "admin", web_admin.FEED_FORM, lambda h: h.web_admin.submit_feed),
    Route("GET", f"{urls.IMAGES}{{digest}}", "images", images.GET_IMAGE, lambda h: h.images.get),
    Route("GET", "/healthz", "healthz", health.ALIVE, lambda h: h.health.alive),
    Route("GET", "/readyz", "readyz", health.READY, lambda h: h.health.ready),
    Route("GET", "/metrics", "metrics", health.GET_METRICS, lambda h: h.health.metrics),
    Route("GET", urls.OPENAPI, "openapi", openapi.OPENAPI, lambda h: h.openapi.get),
    Route("GET", urls.DOCS, "docs", api_docs.GET_DOCS, lambda h: h.api_docs.get),
    Route("GET", "/", "river", river.GET_RIVER, lambda h: h.rivers.get),
    Route("GET", "/river.json", "river", river.river_document(n.JSON), lambda h: h.rivers.get),
    Route("GET", "/river.atom", "river", river.river_document(n.ATOM), lambda h: h.rivers.get),
    Route("GET", "/search", "search", search.SEARCH_FEEDS, lambda h: h.searches.get),
    Route("GET", urls.LOGIN, "login", sign_in.SHOW, lambda h: h.sign_in.show),
    Route("POST", urls.LOGIN, "login", sign_in.SIGN_IN, lambda h: h.sign_in.post),
    Route("GET", urls.LOGIN_WAIT, "login", sign_in.WAIT, lambda h: h.sign_in.wait),
    Route("POST", urls.LOGIN_WAIT, "login", sign_in.COMPLETE, lambda h: h.sign_in.complete),
    Route("GET", urls.LOGIN_BASIC, "login", sign_in.ASK_PASSWORD, lambda _: sign_in.ask_password),
    Route("GET", f"{urls.OUTLINE}{{name}}/", "outline", outlines.OUTLINE_PAGE, lambda h: h.outlines.show),
    Route("POST", f"{urls.OUTLINE}{{name}}/", "outline", outlines.OUTLINE_MOVE, lambda h: h.outlines.move),
    Route("GET", f"{urls.WRITE}{{name}}/", "write", editor.WRITE_PAGE, lambda h: h.editor.show),
    Route("POST", f"{urls.WRITE}{{name}}/", "write", editor.WRITE_ENTRY, lambda h: h.editor.post),
    Route("GET", f"{urls.WRITE}{{name}}/{{id}}", "write", editor.WRITE_PAGE, lambda h: h.editor.show),
    Route("POST", f"{urls.WRITE}{{name}}/{{id}}", "write", editor.WRITE_ENTRY, lambda h: h.editor.post),
    Route("GET", f"{urls.DELETE}{{name}}/{{id}}", "delete", editor.DELETE_PAGE, lambda h: h.editor.confirm),
    Route("POST", f"{urls.DELETE}{{name}}/{{id}}", "delete", editor.DELETE_ENTRY, lambda h: h.editor.delete),
    Route("GET", urls.ACCOUNT, "account", sign_in.ACCOUNT_PAGE, lambda h: h.sign_in.account),
    Route("POST", urls.ACCOUNT, "account", sign_in.SIGN_OUT, lambda h: h.sign_in.sign_out),
    Route("POST", urls.THEME, "theme", theme.CHOOSE_THEME, lambda h: h.themes.choose),
    Route("GET", "/favicon.ico", "static", static.GET_ICON, lambda _: static.get_icon),
    Route("GET", f"{urls.STATIC}{{file}}", "static", static.GET_FILE, lambda _: static.get_static),
)
# fmt: on


def document(sides: Iterable[HttpSide[Any]]) -> dict[str, Any]:
    """Returns the OpenAPI document of the kernel's table and of the features."""
    routes = (*TABLE, *(route for side in sides for route in side.routes))
    return openapi.document((each.method, each.path, each.operation) for each in routes if each.operation.described)
