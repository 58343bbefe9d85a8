"""The section `[link]`."""

from smartfeeds.app.config_types import Seconds, SettingsSection


class LinkSettings(SettingsSection):
    """The connection to the XMPP server: reconnecting, keep-alive, and how long an IQ may stay unanswered.

    docs/operator.md describes each key. A dead link is noticed after `ping_idle_s` and `ping_timeout_s`.
    """

    retry_first_s: Seconds = 0.5
    retry_most_s: Seconds = 30.0
    healthy_after_s: Seconds = 30.0
    open_timeout_s: Seconds = 30.0
    ping_idle_s: Seconds = 60.0
    ping_timeout_s: Seconds = 30.0
    answer_s: Seconds = 30.0
