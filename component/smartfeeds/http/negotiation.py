"""The representations, and the choice between them by suffix or Accept header (SF-058; RFC 9110 12.5.1).

aiohttp does not negotiate content. werkzeug refuses `application/json; charset=utf-8`, has a quality for each type and
none for a representation with several types, and takes nine times as long and 2 MB of memory.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus

from smartfeeds.formats import representation
from smartfeeds.formats.representation import Representation
from smartfeeds.http.http_errors import HttpError

_MAX_ACCEPT = 1_024
_MAX_RANGES = 32
_QUALITY = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


JSON = Representation(
    "json",
    "application/json; charset=utf-8",
    ("application/json", "application/activity+json"),
    "JSON",
    has_hub=True,
    self_suffix="",
    link=4,
    schema="Collection",
)
ATOM = representation.ATOM
EVENTS = Representation("events", "text/event-stream", ("text/event-stream",))
HTML = Representation(
    "html", "text/html; charset=utf-8", ("text/html", "application/xhtml+xml"), has_hub=True, self_suffix=""
)
RSS = representation.RSS
OPML = representation.OPML
JAVASCRIPT = "application/javascript; charset=utf-8"
XML = "application/xml; charset=utf-8"
WEB_FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PLAIN = "text/plain"
MARKDOWN = "text/markdown"
# The media types that a form of a page on another host can send.
FORM_TYPES = frozenset({WEB_FORM, MULTIPART, PLAIN, ""})

# Those of the kernel; `forms.FeedForms` has all. Among equals the first wins, so */* is JSON.
OF_FEED = (JSON, ATOM, HTML, EVENTS, RSS, OPML)
OF_LIST = (JSON, HTML, OPML)
OF_RIVER = (JSON, HTML, ATOM)
OF_SEARCH = (JSON, HTML)
OF_ENTRY = (ATOM, JSON)
OF_ENTRY_PAGE = (*OF_ENTRY, HTML)


@lru_cache(512)
def choose(accept: str, offered: tuple[Representation, ...]) -> Representation | None:
    """The representation that an Accept header prefers, None if it accepts none. An empty header accepts everything."""
    ranges = _ranges(accept[:_MAX_ACCEPT])
    best: tuple[float, Representation] | None = None
    for form in offered:
        named = [ranges[kind] for kind in (*form.accept_types, *form.generic_types) if kind in ranges]
        quality = max(named) if named else _quality(ranges, form.bare_type)
        # A stream never ends, so `*/*` must not select it.
        if form is EVENTS and not named:
            continue
        if quality > 0 and (best is None or quality > best[0]):
            best = (quality, form)
    return best[1] if best else None


def negotiate(accept: str, offered: tuple[Representation, ...], what: str) -> Representation:
    """The representation that an Accept header prefers. Raises HttpError(406) if it accepts none: `what` is one of the
    media types that the text names."""
    form = choose(accept, offered)
    if form is None:
        text = f"{what} is one of {', '.join(form.bare_type for form in offered)}"
        raise HttpError(HTTPStatus.NOT_ACCEPTABLE, text)
    return form


@lru_cache(512)
def languages(accept_language: str) -> tuple[str, ...]:
    """The languages of an Accept-Language header, the preferred first (RFC 9110 12.5.4)."""
    if not accept_language.strip():
        return ()
    ranges = _ranges(accept_language[:_MAX_ACCEPT])
    return tuple(sorted((tag for tag, quality in ranges.items() if quality > 0), key=lambda tag: -ranges[tag]))


@lru_cache(512)
def takes_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip and does not prefer the body as it is (RFC 9110 12.5.3). An empty
    header does not allow it."""
    if not accept_encoding.strip():
        return False
    codings = _ranges(accept_encoding[:_MAX_ACCEPT])
    others = codings.get("*", 0.0)
    quality = codings.get("gzip", codings.get("x-gzip", others))
    return quality > 0 and quality >= codings.get("identity", others)


def by_suffix(offered: Iterable[Representation]) -> Mapping[str, Representation]:
    """The representations that have a suffix."""
    return {form.suffix: form for form in offered if form not in (HTML, EVENTS)}


def _ranges(accept: str) -> dict[str, float]:
    """Media range -> quality. A range with an unreadable quality gets 0."""
    if not accept.strip():
        return {"*/*": 1.0}
    qualities: dict[str, float] = {}
    for part in accept.split(",")[:_MAX_RANGES]:
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((text for text in parameters if text.partition("=")[0].strip() == "q"), "q=1")
        match = _QUALITY.fullmatch(quality)
        qualities[name] = float(match[1]) if match else 0.0
    return qualities


def _quality(ranges: Mapping[str, float], kind: str) -> float:
    """The most specific range decides."""
    for name in (kind, f"{kind.partition('/')[0]}/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0
