"""Sets up the poller of other servers, and the subscriber at their hubs."""

import asyncio
import random
import secrets
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.polling.clouds import Clouds
from smartfeeds.features.polling.finding import FeedFinder
from smartfeeds.features.polling.follower import AddressFollower
from smartfeeds.features.polling.poller import PollClients, Poller
from smartfeeds.features.polling.push_inbox import PushInbox
from smartfeeds.features.polling.push_states import OwnCallbacks
from smartfeeds.features.polling.settings import SourceSection
from smartfeeds.features.polling.sources import set_configured_sources
from smartfeeds.features.polling.subscriber import PushClients, Subscriber
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import CallbackClient, Fetcher
from smartfeeds.net.fetch import FetchLimits
from smartfeeds.net.limiter import POLL_LIMITS, HostLimiter
from smartfeeds.workers import DocumentWorkers

SEARCH_S: Final = 20.0  # a person waits so long for each request of a search

_log = structlog.get_logger()


def run_polling(host: Host) -> Running:
    """Returns the poller and the subscriber, and parts for what else comes from other servers.

    There is a `AddressFollower` for people who name an address. There is a `PushInbox` unless hubs cannot reach this
    service, because it has no public address, or push is off (WS-102).
    """
    settings, service = host.settings, host.service
    documents = DocumentWorkers()
    closing = AsyncExitStack()
    closing.callback(documents.close)
    tools = SourceTools(host.now_us, asyncio.sleep, random.random, aside=documents)
    allowed = settings.sources.networks
    own_url = settings.http.base_url
    can_push = bool(settings.http.listen and own_url and settings.sources.push)
    own = OwnCallbacks(own_url, secrets.token_urlsafe if can_push else None, settings.sources.secret_over_http)
    # Polls have a limiter of their own: they are spaced by a second, and mirrors hold requests for a minute.
    limiter = HostLimiter(POLL_LIMITS)
    fetchers = PollClients(
        *(
            Fetcher(FetchLimits(allowed=networks), limiter=limiter, contact=own_url)
            for networks in ((), allowed, EVERYWHERE)
        )
    )
    poller = Poller(service, fetchers, tools, own_url, own.new_key)
    # A person waits for the result of a search, so it is not spaced as polls are.
    searches, limits = HostLimiter(), FetchLimits(total_s=SEARCH_S)
    public = Fetcher(limits, limiter=searches, contact=own_url)
    listed = Fetcher(replace(limits, allowed=allowed), limiter=searches, contact=own_url)
    finder = FeedFinder(public, listed, poller, tools, own_url)
    follower = AddressFollower(host, finder, tools)
    push_clients = PushClients(
        *(
            CallbackClient(networks, allowed_by="sources.allowed_networks", contact=own_url)
            for networks in ((), allowed, EVERYWHERE)
        )
    )
    subscriber = Subscriber(service, push_clients, Clouds(own_url), tools, own)
    inbox = None if own.new_key is None else PushInbox(service, fetchers, tools, own, own.new_key)

    def readings() -> Iterator[object]:
        yield from poller.readings()
        yield from subscriber.readings()

    return Running(
        duties=(("sources", poller.run), *((("hubs of sources", subscriber.run),) if inbox is not None else ())),
        tasks=() if inbox is None else (("pushes of sources", inbox.run),),
        parts=(tools, fetchers, own, poller, subscriber, finder, follower, *((inbox,) if inbox is not None else ())),
        clients=(closing, public, listed, *fetchers, *push_clients),
        start=partial(_start, host, own),
        readings=readings,
        handlers=follower.handlers,
    )


async def _start(host: Host, own: OwnCallbacks) -> None:
    """Stores the sources of the configuration. Raises StoreError."""
    if own.new_key is None and host.settings.sources.push:
        _log.info("source_push_off", reason="http.base_url is not set; hubs cannot reach this service")
    sources = [section.to_source(host.now_us()) for section in host.settings.sections(SourceSection)]
    await host.service.write(partial(set_configured_sources, sources=sources))
