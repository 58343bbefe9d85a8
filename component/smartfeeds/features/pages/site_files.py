"""The files by which browsers and search engines know the site: the manifest of the app (W3C Web App Manifest), the
description of its search (OpenSearch 1.1), and the rules for crawlers (RFC 9309)."""

from hashlib import sha256
from typing import Final

from smartfeeds.core.text import attribute, cut, escape
from smartfeeds.core.urls import (
    ACCOUNT,
    ADMIN,
    CONFLICTS,
    DELETE,
    FOLLOW,
    GUESTS,
    IMAGES,
    LOGIN,
    OPENSEARCH,
    OUTLINE,
    RIVER,
    SEARCH,
    THEME,
    WRITE,
)
from smartfeeds.features.pages.frame import Frame, frame_of
from smartfeeds.features.pages.site_look import ground
from smartfeeds.features.pages.static_files import static_path
from smartfeeds.formats.json_text import dump_json
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.operations import IF_NONE_MATCH, Operation
from smartfeeds.http.replies import Reply
from smartfeeds.texts import N_

MANIFEST_TYPE: Final = "application/manifest+json"
OPENSEARCH_TYPE: Final = "application/opensearchdescription+xml"

GET_MANIFEST: Final = Operation(
    "manifest",
    "The name and the icons of the site, for browsers that install it as an app",
    {200: {MANIFEST_TYPE: {"type": "object"}}},
    parameters=(IF_NONE_MATCH,),
)
GET_OPENSEARCH: Final = Operation(
    "opensearch",
    "The description of the search, for browsers that add it to their search engines",
    {200: {OPENSEARCH_TYPE: {"type": "string"}}},
    parameters=(IF_NONE_MATCH,),
)
GET_ROBOTS: Final = Operation(
    "robots",
    "The rules for crawlers: they may read feeds and entries, and no page that is for people alone",
    {200: {"text/plain": {"type": "string"}}},
    parameters=(IF_NONE_MATCH,),
)

_ICON_SIZES: Final = (192, 512)
_NAME_CHARACTERS: Final = 16  # of the name of a search engine (OpenSearch 1.1, ShortName)
# Forms, pages of one reader, and pages that cost much and have no text of their own. Crawlers without an account get no
# closed feed in any case.
_NOT_FOR_CRAWLERS: Final = (
    ACCOUNT,
    ADMIN,
    CONFLICTS,
    DELETE,
    FOLLOW,
    GUESTS,
    IMAGES,
    LOGIN,
    OUTLINE,
    SEARCH,
    THEME,
    WRITE,
)


async def get_manifest(call: HttpCall) -> Reply:
    """The manifest."""
    manifest = fixed_file(MANIFEST_TYPE, dump_json(_manifest(frame_of(call))))
    return unless_known(call.header("If-None-Match"), manifest)


async def get_opensearch(call: HttpCall) -> Reply:
    """The description of the search. Raises ForbiddenCharacterError for a name that XML cannot represent."""
    frame = frame_of(call)
    name, search = frame.look.name, f"{call.site_url}{SEARCH}?q={{searchTerms}}"
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
        f"<ShortName>{escape(cut(name, _NAME_CHARACTERS))}</ShortName>"
        f"<Description>{escape(frame.texts.say(N_('Search the feeds of {site}'), site=name))}</Description>"
        f"<Image>{escape(f'{call.site_url}{frame.icon_path}')}</Image>"
        f'<Url type="text/html" template="{attribute(search)}"/>'
        f'<Url type="{OPENSEARCH_TYPE}" rel="self" template="{attribute(f"{call.site_url}{OPENSEARCH}")}"/>'
        "<InputEncoding>UTF-8</InputEncoding>"
        "</OpenSearchDescription>\n"
    )
    description = fixed_file(f"{OPENSEARCH_TYPE}; charset=utf-8", text.encode(), Vary="Accept-Language")
    return unless_known(call.header("If-None-Match"), description)


async def get_robots(call: HttpCall) -> Reply:
    """The rules. Crawlers read them only at the root of a host."""
    lines = ["User-agent: *", *(f"Disallow: {call.base_path}{path}" for path in _NOT_FOR_CRAWLERS)]
    rules = fixed_file("text/plain; charset=utf-8", "\n".join([*lines, ""]).encode())
    return unless_known(call.header("If-None-Match"), rules)


def _manifest(frame: Frame) -> dict[str, object]:
    start = f"{frame.base}{RIVER}"
    return {
        "name": frame.look.name,
        "id": start,
        "start_url": start,
        "scope": start,
        # With the button that leads back, which pages do not have themselves.
        "display": "minimal-ui",
        "background_color": ground(),
        "theme_color": ground(),
        "icons": _icons(frame),
    }


def _icons(frame: Frame) -> list[dict[str, str]]:
    if frame.look.logo is not None:
        # The size of an image is not known here; browsers look at the image itself.
        media_type = frame.look.logo.reply.media_type
        return [{"src": f"{frame.base}{frame.icon_path}", "type": media_type, "sizes": "any"}]
    drawn = {"src": f"{frame.base}{frame.icon_path}", "type": "image/svg+xml", "sizes": "any"}
    images = [
        {"src": f"{frame.base}{static_path(f'icon-{size}.png')}", "type": "image/png", "sizes": f"{size}x{size}"}
        for size in _ICON_SIZES
    ]
    return [drawn, *images]


def fixed_file(media_type: str, body: bytes, **headers: str) -> Reply:
    """A file at a fixed address, with these `headers`, too (`Reply.with_headers`). Clients ask for a newer one after an
    hour, because a restart may change it."""
    tag = f'"{sha256(body).hexdigest()[:24]}"'
    return Reply(body, media_type).with_headers(ETag=tag, Cache_Control="public, max-age=3600", **headers)
