"""`smartfeeds webhook`: lists the webhooks of the configuration, and drops what waits for one."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import config_option, json_option, node_argument, read_settings
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.console import Commands, print_result
from smartfeeds.core.nearest import did_you_mean
from smartfeeds.core.text import counted
from smartfeeds.errors import ConfigError

if TYPE_CHECKING:
    from smartfeeds.features.webhook.requests import WebhookStatus
    from smartfeeds.features.webhook.settings import Webhook


@click.group("webhook", cls=Commands)
def webhook_command() -> None:
    """List the webhooks of the configuration, and drop what waits for one."""


def _configured(config: Path | None) -> "list[Webhook]":
    from smartfeeds.features.webhook.settings import WebhookSettings

    return [section.to_webhook() for section in read_settings(config).sections(WebhookSettings)]


def _statuses(config: Path | None) -> "list[WebhookStatus]":
    from smartfeeds.features.webhook.requests import webhook_status

    webhooks = _configured(config)
    if not webhooks:
        return []  # also without a database
    return read_offline(config, lambda tx, context: [webhook_status(tx, context, webhook) for webhook in webhooks])


@webhook_command.command("list")
@node_argument(required=False)
@list_options
def list_webhooks(node: str | None, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List the webhooks of the configuration, of NODE or of all nodes: host, state, waiting items and last error.

    Secrets and addresses are not shown. `smartfeeds consumer retry webhook:NAME` makes the next attempt now.
    """
    from smartfeeds.features.webhook.resources import WEBHOOKS

    listed = (status for status in _statuses(config) if node in (None, status.webhook.node))
    print_list(WEBHOOKS, listed, as_json=as_json, wide=wide)


@webhook_command.command("drop")
@click.argument("name")
@config_option
@json_option
def drop(name: str, config: Path | None, *, as_json: bool) -> None:
    """Drop what waits for the webhook NAME: it goes on with the next change of its feed.

    The items stay in the feed. The `previous_cursor` of the next message shows the receiver that it lacks some.
    """
    from smartfeeds.features.webhook.requests import drop_waiting

    webhooks = {webhook.name: webhook for webhook in _configured(config)}
    webhook = webhooks.get(name)
    if webhook is None:
        hint = did_you_mean(name, webhooks) or "; smartfeeds webhook list shows the names"
        raise ConfigError(f"there is no webhook {name}{hint}")
    count = write_offline(config, lambda tx, context: drop_waiting(tx, context, webhook))
    text = f"Dropped {counted(count, 'item')} that waited for {name}; the feed {webhook.node} still has them."
    print_result(text, {"webhook": name, "node": webhook.node, "dropped": count}, as_json=as_json)
