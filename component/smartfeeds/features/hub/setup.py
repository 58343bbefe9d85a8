"""The hub in the running service."""

from contextlib import aclosing
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.hub.hub import Hub
from smartfeeds.formats.rss_channel import OwnCloud


def run_hub(host: Host) -> Running:
    """Returns the hub; nothing without a public address, because topics and the hub have addresses below it."""
    tools = host.parts.get(CallbackTools)
    if not tools.site_url:
        return Running()
    hub = Hub(tools, partial(host.parts.find, OwnCloud))
    return Running(
        duties=(("hub questions", hub.run),),
        parts=(hub,),
        clients=(aclosing(hub.results),),
        start=hub.start,
        readings=hub.readings,
    )
