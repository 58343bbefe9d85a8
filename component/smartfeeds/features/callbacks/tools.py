"""The tools of the two servers of callbacks, the hub and the cloud."""

from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.net.clients import CallbackClient
from smartfeeds.service.feeds import FeedService


@dataclass(frozen=True, slots=True)
class CallbackTools:
    """The parts of the service that they share.

    `site_url` is the public address of the service without a slash at its end; "" if it has none, and then nobody can
    subscribe. `now_us` gives microseconds, `new_challenge` a text of letters and digits that nobody can guess.
    """

    service: FeedService
    client: CallbackClient
    dispatcher: Dispatcher
    settings: WebhooksSettings
    site_url: str
    now_us: Callable[[], int]
    new_challenge: Callable[[], str]
