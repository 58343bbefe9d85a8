"""`smartfeeds webhook`: lists the webhooks of the configuration, and drops what waits for one."""

from pathlib import Path

import click

from smartfeeds.cli.common import config_option, read_settings
from smartfeeds.cli.list_commands import list_command
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.console import Commands, print_out
from smartfeeds.core.consumers import Failure
from smartfeeds.core.text import counted
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError
from smartfeeds.features.webhook.requests import WebhookStatus, drop_waiting, webhook_status
from smartfeeds.features.webhook.settings import Webhook, WebhookSettings
from smartfeeds.service.consumer_requests import next_attempt
from smartfeeds.service.resources import Column, Resource


def _failure(status: WebhookStatus) -> Failure | None:
    return None if status.consumer is None else status.consumer.failure


# The path of an address is often the secret of its receiver, so the list has the hosts only.
WEBHOOKS: Resource[WebhookStatus] = Resource(
    "webhooks",
    "webhook",
    (
        Column("name", lambda status: status.webhook.name),
        Column("node", lambda status: status.webhook.node),
        Column("filter", lambda status: status.webhook.filter),
        Column("host", lambda status: status.webhook.host),
        Column("signed", lambda status: bool(status.webhook.secret)),
        Column("state", lambda status: "new" if status.consumer is None else status.consumer.state.value),
        Column("waiting", lambda status: 0 if status.consumer is None else status.consumer.waiting),
        Column("lag_s", lambda status: 0 if status.consumer is None else status.consumer.lag_us // US_PER_S),
        Column("failures", lambda status: failure.count if (failure := _failure(status)) else 0),
        Column("error", lambda status: failure.error if (failure := _failure(status)) else ""),
        Column("next_attempt", lambda status: next_attempt(failure.next_us) if (failure := _failure(status)) else ""),
    ),
    empty="There are no webhooks. A section [[webhook]] of the configuration adds one.",
)


@click.group("webhook", cls=Commands)
def webhook_command() -> None:
    """List the webhooks of the configuration, and drop what waits for one."""


def _configured(config: Path | None) -> list[Webhook]:
    return [section.to_webhook() for section in read_settings(config).sections(WebhookSettings)]


def _statuses(config: Path | None) -> list[WebhookStatus]:
    webhooks = _configured(config)
    if not webhooks:
        return []  # also without a database
    return read_offline(config, lambda tx, context: [webhook_status(tx, context, webhook) for webhook in webhooks])


webhook_command.add_command(
    list_command(
        WEBHOOKS,
        _statuses,
        "List the webhooks of the configuration: node, filter, host, state, waiting items, last error and next attempt."
        "\n\nSecrets and addresses are not shown. `smartfeeds consumer retry webhook:NAME` makes the next attempt now.",
        lambda status: status.webhook.node,
        "Only webhooks of this node.",
    )
)


@webhook_command.command("drop")
@click.argument("name")
@config_option
def drop(name: str, config: Path | None) -> None:
    """Drop what waits for the webhook NAME: it goes on with the next change of its feed.

    The items stay in the feed. The `previous_cursor` of the next message shows the receiver that it lacks some.
    """
    webhook = next((webhook for webhook in _configured(config) if webhook.name == name), None)
    if webhook is None:
        raise ConfigError(f"there is no webhook {name}; smartfeeds webhook list shows the names")
    count = write_offline(config, lambda tx, context: drop_waiting(tx, context, webhook))
    print_out(f"Dropped {counted(count, 'item')} that waited for {name}; the feed {webhook.node} still has them.")
