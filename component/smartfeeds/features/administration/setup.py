"""Runs the operations of admins on the process."""

from collections.abc import Sequence

from smartfeeds import system
from smartfeeds.app.feature import Host, Running
from smartfeeds.features.administration.adhoc_process import encode_announcement
from smartfeeds.features.administration.process import Announcement, ServiceOperations


def run_operations(host: Host) -> Running:
    """Returns the operations as what runs."""
    domain = host.settings.component.jid

    async def send(addresses: Sequence[str], announcement: Announcement) -> None:
        """Sends a message to each address, in turn with notifications. Raises LinkError."""
        await host.link.outbox.notify(
            encode_announcement(domain, address, announcement, f"announce-{system.new_id()}") for address in addresses
        )

    return Running(handlers=ServiceOperations(host.service, host.process, send, host.now_us).handlers)
