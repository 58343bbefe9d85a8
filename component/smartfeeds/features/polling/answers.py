"""Turns the response of a source's server into the answer that `polls` decides by (SRC-022, SRC-024, SRC-033 to
SRC-045)."""

import re
from collections.abc import Sequence
from typing import Final

from smartfeeds.core.ip_addresses import Network, plain_address
from smartfeeds.core.times import US_PER_S
from smartfeeds.features.polling.polls import AnswerKind, PollAnswer, may_store_redirect
from smartfeeds.features.polling.reading import SourceDocument
from smartfeeds.features.polling.source import MAX_URL_BYTES, Source, host_of
from smartfeeds.formats.dates import parse_date
from smartfeeds.net.addresses import may_connect
from smartfeeds.net.fetch import FetchError, FetchResponse, Headers

_TOO_MANY = 429
_GONE = 410
# RFC 9110 15.3: OK, and Non-Authoritative Information. A part (206) or a difference (226) was not asked for.
_WHOLE = frozenset({200, 203})
_MAX_AGE: Final = re.compile(r"""(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,12})""", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]{1,12}")
# With these the response says that it must not be stored, and nothing about the time of the next document.
_TIMELESS: Final = re.compile(r"(?:^|[,\s])no-(?:cache|store)(?:$|[,\s=])", re.IGNORECASE)


def whole(response: FetchResponse) -> FetchResponse:
    """The response if it has the whole document or none. Raises FetchError."""
    if response.status in _WHOLE or response.not_modified:
        return response
    error = FetchError(response.url, f"answered {response.status}, which was not asked for", status=response.status)
    error.hops = response.hops
    raise error


def good_answer(
    source: Source, response: FetchResponse, document: SourceDocument | None, allowed: Sequence[Network] = ()
) -> PollAnswer:
    """The answer of a response whose document was read, or of one that is not modified (None). `allowed` are the
    networks that the source may reach although they are not public."""
    kind = AnswerKind.UNCHANGED if document is None else AnswerKind.READ
    return PollAnswer(
        kind,
        validators=response.validators,
        fresh_s=_fresh_s(response.headers),
        moved_to=_moved_to(source, response, allowed),
        hints=PollAnswer(kind).hints if document is None else document.hints,
        times_us=() if document is None else document.times_us,
        title="" if document is None else document.feed.title,
        # A longer text is no address that somebody types.
        site="" if document is None or len(document.feed.link) > MAX_URL_BYTES else document.feed.link,
    )


def _fresh_s(headers: Headers) -> int | None:
    """The seconds for which a response is fresh (RFC 9111 section 4.2): max-age less Age, else Expires less Date. None
    if it does not say, or says that it is not."""
    control = ",".join(headers.getall("Cache-Control", ()))
    if _TIMELESS.search(control):
        return None
    match = _MAX_AGE.search(control)
    if match is not None:
        age = headers.get("Age", "").strip()
        seconds = int(match[1]) - (int(age) if _NUMBER.fullmatch(age) else 0)
    else:
        expires_us, date_us = (parse_date(headers.get(name, "")) for name in ("Expires", "Date"))
        if expires_us is None or date_us is None:
            return None
        seconds = (expires_us - date_us) // US_PER_S
    return seconds if seconds > 0 else None


def failed_answer(error: FetchError) -> PollAnswer:
    """The answer of a request that failed. The kind BUSY still lacks the end of the pause."""
    status = error.status
    if status == _TOO_MANY or error.retry_after_s is not None:
        return PollAnswer(AnswerKind.BUSY, error.reason)
    if status == _GONE:
        return PollAnswer(AnswerKind.GONE, error.reason)
    kind = AnswerKind.REFUSED if 400 <= status < 500 else AnswerKind.FAILED
    return PollAnswer(kind, error.reason)


def busy_host(source: Source, error: FetchError) -> str:
    """The host that wants a pause: that of the last request."""
    return host_of(error.hops[-1].url) if error.hops else source.host


def _moved_to(source: Source, response: FetchResponse, allowed: Sequence[Network]) -> str:
    """The target of permanent redirects if it may become the address of the source, else ""."""
    target = response.permanent_url
    if target == source.url or not response.hops:
        return ""
    address = next((hop.address for hop in response.hops if hop.url == target), "")
    return target if may_store_redirect(source.url, target, is_allowed=_may_stay(target, address, allowed)) else ""


def _may_stay(url: str, address: str, allowed: Sequence[Network]) -> bool:
    """Whether the host of an address is on the open Internet, or in an allowed network. `address` is its IP address, ""
    if it is not known."""
    host = host_of(url).rpartition(":")[0]
    if plain_address(host) is None:
        return not address or may_connect(address, allowed)
    return may_connect(host, allowed)
