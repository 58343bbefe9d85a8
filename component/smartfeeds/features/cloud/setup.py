"""The cloud in the running service."""

from contextlib import aclosing

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.cloud.cloud import CloudServer


def run_cloud(host: Host) -> Running:
    """Returns the cloud; nothing if it is off, or without a public address, which feeds name."""
    tools = host.parts.get(CallbackTools)
    if not tools.site_url or tools.settings.cloud == "off":
        return Running()
    cloud = CloudServer(tools)
    return Running(
        parts=(cloud, cloud.own), clients=(aclosing(cloud.results),), start=cloud.start, readings=cloud.readings
    )
