"""The hub of a web feed that a mirror follows (WebSub section 4).

`features.polling.subscriber` and `features.polling.push_inbox` subscribe and take pushes, as for sources. A push only
wakes the mirror, which reads its feed: no item comes from the push itself.
"""

import asyncio
from functools import partial

from smartfeeds.features.mirrors.mirror_documents import WebDocument
from smartfeeds.features.mirrors.mirror_push import find_mirror_push, follow_offer
from smartfeeds.features.polling.push_links import offer_of
from smartfeeds.features.polling.push_states import SECRET_BYTES, TOKEN_BYTES, OwnCallbacks, PushState
from smartfeeds.features.polling.source_push import PolledOffer
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.service.feeds import FeedService


class MirrorHub:
    """The subscription of one mirror. `is_wanted`: there is one; `is_active`: the hub has confirmed it."""

    def __init__(self, mirror: str, service: FeedService, tools: SourceTools, own: OwnCallbacks) -> None:
        self.is_wanted = False
        self.is_active = False
        self._mirror = mirror
        self._find = partial(find_mirror_push, mirror=mirror)
        self._service = service
        self._tools = tools
        self._own = own
        self._pushed = asyncio.Event()
        self._noted_us: int | None = None  # the last push that the mirror was woken by

    async def follow(self, page: WebDocument | None, address: str, began_us: int, *, has_news: bool) -> bool:
        """Subscribes at the hub that a document or page names, after it was read. The page is None if nothing has
        changed; `address` is that of the mirror.

        Returns whether the feed is to be read again soon, because the hub announced a change and it had none. Raises
        StoreError.
        """
        new_key = self._own.new_key
        if new_key is None:
            return False
        offer = None
        if page is not None and page.links is not None:
            # The address of a page has its cursor, so it is no topic.
            topic = page.links.topic or (address if page.cursor else page.url)
            offer = offer_of(list(page.links.hubs), topic, [], self._own.own_url)
        if not (offer and offer.targets) and await self._service.read(self._find) is None:
            return False
        polled = PolledOffer(began_us, offer, new_key(TOKEN_BYTES), new_key(SECRET_BYTES))
        work = partial(follow_offer, mirror=self._mirror, polled=polled, has_news=has_news)
        is_again = await self._service.write(work)
        await self.look()
        return is_again

    async def look(self) -> None:
        """Wakes the mirror if a push has come to any process. Raises StoreError."""
        push = await self._service.read(self._find)
        self.is_wanted = push is not None
        self.is_active = push is not None and push.state is PushState.ACTIVE
        if push is not None and push.hint is not None and push.hint.at_us != self._noted_us:
            self._noted_us = push.hint.at_us
            self._pushed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Waits for a push. Returns whether one came."""
        is_pushed = await self._tools.wait(self._pushed, timeout_s)
        self._pushed.clear()
        return is_pushed
