"""Reads the hints of a document about the next request: ttl, skipHours, skipDays (RSS), and the RSS module
"syndication" (SRC-023, SRC-026; RSS-032, A-138)."""

import re
from collections.abc import Iterable
from typing import Final

from smartfeeds.features.polling.source import NO_HINTS, DocumentHints
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.dates import parse_date
from smartfeeds.formats.feed_document import FeedDocument
from smartfeeds.formats.rss_channel import DAYS
from smartfeeds.formats.xml import parse_stored

SYNDICATION_NS: Final = "http://purl.org/rss/1.0/modules/syndication/"
# The periods of the module, in seconds. A feed that names none of them is updated daily.
_PERIODS_S: Final = {
    "hourly": 3_600,
    "daily": 86_400,
    "weekly": 7 * 86_400,
    "monthly": 30 * 86_400,
    "yearly": 365 * 86_400,
}
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,5}")


def poll_hints(document: FeedDocument) -> DocumentHints:
    """The hints of a document. A ttl of 0 says nothing."""
    channel = document.channel
    if channel is None:
        return NO_HINTS
    period_s, base_us = _syndication(channel.extensions)
    return DocumentHints(
        ttl_s=channel.ttl_min * 60 if channel.ttl_min else None,
        period_s=period_s,
        base_us=base_us,
        skip_hours=channel.skip_hours,
        skip_days=tuple(DAYS.index(day) for day in channel.skip_days),
    )


def _syndication(extensions: Iterable[bytes]) -> tuple[int | None, int | None]:
    """The period in seconds and its base. Values are trimmed: WordPress writes line breaks around them."""
    texts: dict[str, str] = {}
    for data in extensions:
        if SYNDICATION_NS.encode() in data:
            element = parse_stored(data)
            texts.setdefault(element.tag, string_of(element).strip())
    period, frequency = (texts.get(f"{{{SYNDICATION_NS}}}update{name}") for name in ("Period", "Frequency"))
    if period is None and frequency is None:
        return None, None
    period_s = _PERIODS_S.get((period or "daily").lower())
    if period_s is None or _NUMBER.fullmatch(frequency or "1") is None:
        return None, None
    return period_s // int(frequency or 1), parse_date(texts.get(f"{{{SYNDICATION_NS}}}updateBase", ""))
