"""The chat bot, from the settings."""

from collections.abc import Callable

from smartfeeds import system
from smartfeeds.app.config import Settings
from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.features.accounts.sign_ins import SignIns
from smartfeeds.features.bot.bot import Bot, BotOptions
from smartfeeds.features.cluster.letters import Letterbox
from smartfeeds.features.polling.finding import FeedFinder
from smartfeeds.features.presence.states import Availability
from smartfeeds.service.answers import Handle
from smartfeeds.service.feeds import FeedService
from smartfeeds.xmpp.stream import ComponentStream


def make_bot(
    settings: Settings,
    service: FeedService,
    handle: Handle,
    dispatcher: Dispatcher,
    stream: ComponentStream,
    sign_ins: SignIns,
    finder: FeedFinder,
    availability: Availability,
    clock: Callable[[], int],
    letters: Letterbox,
) -> Bot | None:
    """Returns the bot, or None if it is switched off."""
    if not settings.bot.enabled:
        return None
    options = BotOptions(
        settings.component.jid,
        settings.bot.name,
        settings.http.base_url if settings.http.listen else "",
        settings.bot.rooms,
        settings.bot.rooms_max,
        settings.bot.messages_per_minute,
    )
    return Bot(
        options,
        service,
        handle,
        dispatcher,
        stream.outbox,
        stream.call,
        sign_ins,
        finder,
        is_available=availability.is_available,
        clock=clock,
        monotonic=system.monotonic,
        letters=letters,
    )
