"""The section `[webhooks]`: requests to callbacks, the hub and the cloud."""

from typing import Literal

from pydantic import model_validator

from smartfeeds.app.config_types import Count, FilePath, NetworkText, SettingsSection


class WebhooksSettings(SettingsSection):
    """Requests to callbacks, whose addresses subscribers choose."""

    allowed_networks: tuple[NetworkText, ...] = ()
    ca_file: FilePath | None = None
    lease_default_s: Count = 864_000
    lease_min_s: Count = 3_600
    lease_max_s: Count = 2_592_000
    signature: Literal["", "sha1", "sha256", "sha384", "sha512"] = ""
    cloud: Literal["http-post", "xml-rpc", "soap", "off"] = "http-post"
    requests_per_minute: Count = 60
    subscriptions_per_feed: Count = 10_000
    subscriptions_per_host: Count = 10_000
    subscriptions: Count = 100_000

    @model_validator(mode="after")
    def _leases_fit(self) -> "WebhooksSettings":
        if not self.lease_min_s <= self.lease_default_s <= self.lease_max_s:
            raise ValueError("lease_default_s must be between lease_min_s and lease_max_s")
        return self

    def lease_s(self, wish_s: int | None) -> int:
        """Returns the lease for a wish, None for no wish."""
        return min(max(self.lease_default_s if wish_s is None else wish_s, self.lease_min_s), self.lease_max_s)
