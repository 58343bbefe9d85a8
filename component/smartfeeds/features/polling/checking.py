"""Explains what a poll of an address would see: `smartfeeds source check` (SRC-047, SRC-048)."""

import contextlib
from dataclasses import dataclass

from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import FeedError
from smartfeeds.features.polling.answers import failed_answer, good_answer, whole
from smartfeeds.features.polling.polls import GOOD, after_answer, hinted_s
from smartfeeds.features.polling.reading import ACCEPT_SOURCE, SourceDocument, read_source
from smartfeeds.features.polling.source import Source, host_of
from smartfeeds.features.polling.tools import DocumentRunner, read_here
from smartfeeds.formats.autodiscovery import MAX_PAGE_BYTES, PageLink, links_of
from smartfeeds.net.fetch import Fetcher, FetchError, Hop, Response, Sender


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What an address answers. `problem` is why it cannot be a source, "" if it can. `links` are the feeds that a web
    page offers. `hint_s` is the interval that the server asks for, `next_s` the seconds until the next poll."""

    hops: tuple[Hop, ...]
    problem: str = ""
    content_type: str = ""
    has_validators: bool = False
    document: SourceDocument | None = None
    links: tuple[PageLink, ...] = ()
    hint_s: int | None = None
    next_s: int | None = None


async def check_source(
    fetcher: Fetcher, source: Source, now_us: int, aside: DocumentRunner = read_here
) -> SourceReport:
    """Requests the address of a source once, and stores nothing."""
    settings = source.settings
    try:
        sender = Sender(settings.user, settings.password, settings.user_agent)
        response = whole(await fetcher.get(source.url, accept=ACCEPT_SOURCE, sender=sender))
    except FetchError as error:
        after = after_answer(source, failed_answer(error), now_us, 0.5)
        return SourceReport(error.hops, error.reason, next_s=_seconds(after, now_us))
    return await _read(source, response, now_us, aside)


async def _read(source: Source, response: Response, now_us: int, aside: DocumentRunner) -> SourceReport:
    content_type = response.content_type
    try:
        document = await aside(
            read_source,
            *(response.body, response.charset, response.url, source, ""),
            response.headers.getall("Link", ()),
            party=source.host,
        )
    except FeedError as error:
        links = await _links(response, aside)
        return SourceReport(response.hops, error.text or error.condition.value, content_type, links=links)
    answer = good_answer(source, response, document)
    assert answer.kind in GOOD
    after = after_answer(source, answer, now_us, 0.5)
    return SourceReport(
        response.hops,
        "",
        content_type,
        has_validators=bool(response.validators),
        document=document,
        links=await _links(response, aside) if document.is_page else (),
        hint_s=hinted_s(after.progress),
        next_s=_seconds(after, now_us),
    )


async def _links(response: Response, aside: DocumentRunner) -> tuple[PageLink, ...]:
    """The feeds that a web page offers; none if the page cannot be read within the limits."""
    if response.body.lstrip()[:1] != b"<":
        return ()
    with contextlib.suppress(FeedError):
        return await aside(links_of, response.body[:MAX_PAGE_BYTES], response.url, party=host_of(response.url))
    return ()


def _seconds(source: Source, now_us: int) -> int | None:
    return None if source.due_us is None or source.due_us <= now_us else (source.due_us - now_us) // US_PER_S
