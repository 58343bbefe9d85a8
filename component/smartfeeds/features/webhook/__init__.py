"""Outgoing webhooks: addresses of the configuration that receive the changes of a feed as JSON."""

from smartfeeds.app.feature import Feature, Host, Running, Section


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.webhook.settings import WebhookSettings, check_webhooks

    return (Section("webhook", WebhookSettings, repeats=True, check=check_webhooks),)


def _run(host: Host) -> Running:
    from smartfeeds.features.webhook.setup import run_webhooks

    return run_webhooks(host)


WEBHOOK = Feature(
    "webhook",
    commands={"webhook": "smartfeeds.features.webhook.command"},
    settings=_settings,
    run=_run,
)
