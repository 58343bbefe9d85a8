"""Enclosures that are loaded in advance: their rows, and the rules that choose them (RSS-034, A-126, A-128; PRE-010 to
PRE-014).

Times are microseconds since the Unix epoch, sizes are bytes.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from smartfeeds.core.feed_files import media_type_of
from smartfeeds.features.polling.enclosure_rules import Rule
from smartfeeds.features.prefetch.settings import PrefetchSettings

# So many windows with a failure, then the service gives an enclosure up (PRE-025).
MAX_FAILURES: Final = 3


class EnclosureState(StrEnum):
    """The state of an enclosure."""

    WAITING = "waiting"
    """It is loaded in a window."""
    ARRIVED = "arrived"
    """Its file is complete."""
    GIVEN_UP = "given-up"
    """It is not tried again."""


class Enclosure(NamedTuple):
    """A file at an address that items name.

    `digest` of the address is the name of the file. `media_type` and `length_bytes` are those of the item until the
    file has arrived, then those of the file; None is unknown. `dated_us` is the time of the newest item that names it.
    `reason` says why the last attempt ended. `failures` counts windows with a failure, `tried_us` is the time of the
    last attempt. `asked_us` is set while an operator wants the file outside the windows. `total_bytes`, `etag` and
    `modified` are those of the last response, `condition` its validator for If-Range, "" if it has none.
    `partial_bytes` were loaded so far. `night_bytes` were loaded in the window that opened at `night_us`.
    """

    enclosure_no: int
    url: str
    host: str
    digest: str
    media_type: str
    length_bytes: int | None
    state: EnclosureState
    reason: str
    dated_us: int
    since_us: int
    failures: int = 0
    tried_us: int = 0
    asked_us: int | None = None
    total_bytes: int | None = None
    etag: str = ""
    modified: str = ""
    condition: str = ""
    partial_bytes: int = 0
    night_us: int = 0
    night_bytes: int = 0


class EnclosureUse(NamedTuple):
    """An item that names an enclosure, and the source that has brought the item."""

    enclosure_no: int
    source_no: int
    item_id: str
    node: str
    dated_us: int


class FileArrival(NamedTuple):
    """An entry of the log: a file that has arrived, or why it has not (PRE-031). `seconds` is the time of the load."""

    arrival_no: int
    at_us: int
    node: str
    item_id: str
    url: str
    size_bytes: int
    seconds: float
    reason: str


class Verdict(NamedTuple):
    """Whether the rules allow an enclosure: at most `max_bytes` of it, or why not."""

    max_bytes: int
    refusal: str = ""


def judge(
    settings: PrefetchSettings, own_rules: Sequence[Rule], url: str, media_type: str, length_bytes: int | None
) -> Verdict:
    """Applies the rules to what an item says of an enclosure; nothing is requested (RSS-034). `own_rules` of a source
    replace those of the settings. The first rule that applies decides; without one the enclosure is refused (PRE-011).
    """
    parts = _web_parts(url)
    if parts is None:
        return Verdict(0, "its address is not on the web")
    host, path = parts
    if "@" in urlsplit(url).netloc:
        return Verdict(0, "its address has a name or password")
    media_type = media_type.partition(";")[0].strip().lower() or media_type_of(path)
    if not media_type and not settings.unknown_type:
        return Verdict(0, "its type is unknown")
    if length_bytes is None and not settings.unknown_length:
        return Verdict(0, "its length is unknown")
    rules = own_rules or settings.parsed_rules
    rule = next((rule for rule in rules if _applies(rule, host, url, media_type, length_bytes)), None)
    if rule is None or not rule.allows:
        return Verdict(0, "no rule allows it" if rule is None else "a rule refuses it")
    max_bytes = settings.file_bytes if rule.max_bytes is None else min(settings.file_bytes, rule.max_bytes)
    if (length_bytes or 0) > max_bytes:
        return Verdict(0, f"it has {length_bytes} bytes; the limit is {max_bytes}")
    return Verdict(max_bytes)


def _applies(rule: Rule, host: str, url: str, media_type: str, length_bytes: int | None) -> bool:
    return (
        # With the switch for unknown types, no type contradicts a rule.
        (not media_type or _fits(rule.media_type, media_type))
        and _fits(rule.host, host)
        and rule.word in url.lower()
        # An unknown length may be within the limit of a rule that allows; the load is cut there.
        and (rule.max_bytes is None or (rule.allows if length_bytes is None else length_bytes <= rule.max_bytes))
    )


def _fits(pattern: str, text: str) -> bool:
    return not pattern or re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def _web_parts(url: str) -> tuple[str, str] | None:
    """The host and the path of an http or https address, None for anything else (A-126)."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return None
    return (host.lower(), parts.path) if host and parts.scheme.lower() in ("http", "https") else None


def digest_of(url: str) -> str:
    """The name of the file of an address (PRE-029)."""
    return sha256(url.encode("utf-8", "surrogatepass")).hexdigest()
