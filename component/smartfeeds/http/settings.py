"""The section `[http]`."""

from typing import Annotated

from pydantic import Field

from smartfeeds.app.config_types import BaseUrl, Count, ListenAddress, NetworkText, Seconds, SettingsSection


class HttpSettings(SettingsSection):
    """The HTTP server. docs/operator.md describes each key.

    `connections_per_address` limits the connections of one address (IPv6: of one `network_of`), or the requests for
    feeds that it has open at once through a proxy. `first_request_s` is the time for the first request of a connection,
    and for a body, to arrive. `unread_s` is the time for a client that does not read its response.
    """

    listen: ListenAddress = "127.0.0.1:8280"
    base_url: BaseUrl = ""
    proxies: tuple[NetworkText, ...] = ()
    metrics_from: tuple[NetworkText, ...] = ("127.0.0.0/8", "::1/128")
    poll_default_s: Count = 55
    poll_max_s: Count = 120
    heartbeat_s: Seconds = 15.0
    connections: Count = 16_384
    connections_per_address: Count = 256
    first_request_s: Seconds = 15.0
    idle_s: Seconds = 75.0
    unread_s: Seconds = 60.0
    upload_bytes: Annotated[int, Field(ge=0, le=1_073_741_824)] = 16_777_216
    drain_s: Annotated[float, Field(ge=0, le=300)] = 0.0
