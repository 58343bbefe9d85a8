"""Outgoing webhooks: addresses of the configuration that receive the changes of a feed as JSON."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, Section

if TYPE_CHECKING:
    import click


def _settings() -> tuple[Section, ...]:
    from smartfeeds.features.webhook.settings import WebhookSettings, check_webhooks

    return (Section("webhook", WebhookSettings, repeats=True, check=check_webhooks),)


def _run(host: Host) -> Running:
    from smartfeeds.features.webhook.setup import run_webhooks

    return run_webhooks(host)


def _webhook() -> "click.Command":
    from smartfeeds.features.webhook.command import webhook_command

    return webhook_command


WEBHOOK = Feature(
    "webhook",
    commands=(
        CommandRow(
            "webhook",
            CommandTopic.SOURCES,
            "List the webhooks of the configuration, and drop what waits for one.",
            _webhook,
            {
                "drop": "Drop what waits for the webhook NAME: it goes on with the next change of its feed.",
                "list": "List the webhooks of the configuration, of NODE or of all nodes: host, state, waiting items "
                "and last error.",
            },
        ),
    ),
    settings=_settings,
    run=_run,
)
