"""Reads and writes sx:sharing in the head of a feed (FeedSync 2.2, 2.3; SSE 2.1, 2.2).

Invalid statements are ignored with a note. They never prevent the merge of the items.
"""

import re
from collections.abc import Iterator

from smartfeeds.core.text import attribute, one_line
from smartfeeds.core.times import parse_datetime
from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS, SYNC_NAMESPACES
from smartfeeds.formats.links import is_uri
from smartfeeds.formats.xml import Element
from smartfeeds.sync.lexis import FEEDSYNC_LEXIS, LENIENT_SSE_LEXIS, SSE_LEXIS, DialectSyntax
from smartfeeds.sync.sharing import NO_SHARING, SSE_VERSION, RelatedFeed, RelatedKind, Sharing, format_bound

SHARINGS = frozenset(f"{{{namespace}}}sharing" for namespace in SYNC_NAMESPACES)
_KINDS = {kind.value: kind for kind in RelatedKind}
_DAYS = re.compile(r"[0-9]{1,4}")
_SHOWN = 200  # characters of a title


def read_sharing(node: Element | None, *, lenient: bool = False) -> tuple[Sharing, list[str]]:
    """Returns the statements of a feed, and notes. `node` is None if the feed has no sx:sharing (FS-013, SSE-005)."""
    if node is None:
        return NO_SHARING, []
    notes: list[str] = []
    namespace = node.tag[1:].partition("}")[0]
    if namespace == FEEDSYNC_NS:
        since, until = _bounds(node, notes)
        expires_us = _time(node, "expires", FEEDSYNC_LEXIS, notes)
        return Sharing(since, until, expires_us, tuple(_related(node, namespace, notes, None))), notes
    lexis = LENIENT_SSE_LEXIS if lenient else SSE_LEXIS
    since, until = (
        None if time_us is None else format_bound(time_us)
        for time_us in (_time(node, name, lexis, notes) for name in ("since", "until"))
    )
    version, days = node.get("version", ""), node.get("window", "")
    if version != SSE_VERSION:
        notes.append(f"sx:sharing has version {version[:20]!r}" if version else "sx:sharing has no version")
    window_days = int(days) if _DAYS.fullmatch(days) is not None else None
    if days and window_days is None:
        notes.append("the window of sx:sharing is not a number of days; it was ignored")
    related = tuple(_related(node, namespace, notes, lexis))
    return Sharing(since, until, None, related, version or SSE_VERSION, window_days), notes


def _bounds(node: Element, notes: list[str]) -> tuple[str | None, str | None]:
    """Returns both bounds or none, and no empty bound (FS-006, FS-015, FS-016). Any text is valid (A-45)."""
    since, until = node.get("since"), node.get("until")
    if since and until:
        return since, until
    for name, value in (("since", since), ("until", until)):
        if value is not None:
            notes.append(f"{name} of sx:sharing was ignored, because the other bound is missing")
    return None, None


def _time(node: Element, name: str, lexis: DialectSyntax, notes: list[str]) -> int | None:
    try:
        return lexis.time(node.get(name), name)
    except FeedError as error:
        notes.append(f"in sx:sharing {error.text}; it was ignored")
        return None


def _related(node: Element, namespace: str, notes: list[str], sse: DialectSyntax | None) -> Iterator[RelatedFeed]:
    """Yields the valid sx:related elements: `link` must be an absolute URI without fragment (FS-018 to FS-020, SSE-011
    to 013).
    """
    for child in node.iterchildren(f"{{{namespace}}}related"):
        link, kind, title = child.get("link", ""), _KINDS.get(child.get("type", "")), child.get("title")
        if not is_uri(link) or "#" in link:
            notes.append("an sx:related was ignored, because its link is not absolute")
        elif kind is None:
            notes.append("an sx:related was ignored, because its type is neither complete nor aggregated")
        else:
            if title == "":
                notes.append("an sx:related has an empty title")
            since_us = None if sse is None else _time(child, "since", sse, notes)
            # FS-011: the title is plain text, even if it looks like markup.
            yield RelatedFeed(link, kind, one_line(title or "")[:_SHOWN], since_us is not None)


def write_sharing(sharing: Sharing) -> bytes:
    """Returns sx:sharing: that of SSE if it has a version, else that of FeedSync. Raises ForbiddenCharacterError."""
    is_sse = bool(sharing.version)
    lexis = SSE_LEXIS if is_sse else FEEDSYNC_LEXIS
    values = {
        "version": sharing.version,
        "since": _bound(sharing.since, is_sse=is_sse),
        "until": _bound(sharing.until, is_sse=is_sse),
        "expires": None if sharing.expires_us is None else lexis.write_time(sharing.expires_us),
        "window": None if sharing.window_days is None else str(sharing.window_days),
    }
    attributes = "".join(f' {name}="{attribute(value)}"' for name, value in values.items() if value)
    related = "".join(
        f'<sx:related link="{attribute(feed.link)}" type="{feed.kind.value}"'
        + (f' title="{attribute(feed.title)}"' if feed.title else "")
        + "/>"
        for feed in sharing.related
    )
    return f'<sx:sharing xmlns:sx="{lexis.namespace}"{attributes}>{related}</sx:sharing>'.encode()


def _bound(text: str | None, *, is_sse: bool) -> str | None:
    """Returns a bound as the dialect writes it: a date for SSE (SSE-003), the text itself for FeedSync (A-45)."""
    time_us = parse_datetime(text) if is_sse and text else None
    return text if time_us is None else SSE_LEXIS.write_time(time_us)
