"""The webhooks in the running service."""

from collections.abc import Sequence
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.webhook.requests import former_consumers
from smartfeeds.features.webhook.settings import Webhook, WebhookSettings
from smartfeeds.service.context import Context
from smartfeeds.service.feeds import FeedService
from smartfeeds.store.base import WriteTx


def run_webhooks(host: Host) -> Running:
    """Returns the deliverer. Consumers of former webhooks are removed at the start."""
    configured = [section.to_webhook() for section in host.settings.sections(WebhookSettings)]
    remove = partial(_remove_former, host.service, configured)
    if not configured:
        return Running(start=remove)
    from smartfeeds.features.webhook.webhooks import Webhooks, make_clients  # what writes JSON is large

    http = host.settings.http
    site_url = http.base_url if http.listen else ""
    clients = make_clients(f"{site_url}/" if site_url else "")
    webhooks = Webhooks(host.service, host.dispatcher, configured, clients, site_url)
    host.changes.listen(webhooks)

    async def start() -> None:
        await remove()
        await webhooks.start()

    return Running(clients=clients, start=start)


async def _remove_former(service: FeedService, configured: Sequence[Webhook]) -> None:
    former = await service.read(partial(former_consumers, webhooks=configured))

    def remove(tx: WriteTx, _context: Context) -> None:
        for consumer in former:
            tx.remove_consumer(consumer)

    if former:
        await service.write(remove)
