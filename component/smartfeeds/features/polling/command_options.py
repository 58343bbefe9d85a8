"""The options that commands of `smartfeeds source` share: the settings of a source, and the node that selects one."""

from collections.abc import Callable
from typing import Any

import click

from smartfeeds.cli.common import bare_jid
from smartfeeds.features.polling.source import LEAST_CHOSEN_S, MAX_HISTORY, TOLD_AT_FIRST


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a source. None means that the option was not given."""
    for option in reversed(
        (
            click.option(
                "--every",
                "every_s",
                type=click.IntRange(LEAST_CHOSEN_S),
                metavar="SECONDS",
                help="A fixed interval. Default: by the rhythm of the feed, 1 to 24 hours.",
            ),
            click.option(
                "--publisher", type=bare_jid, metavar="JID", help="The publisher of the items. Default: the component."
            ),
            click.option("--user-agent", help="The header User-Agent. Default: that of the service."),
            click.option(
                "--told",
                "first_told",
                type=click.IntRange(0),
                help=f"Subscribers are notified of so many items of the first document. Default: {TOLD_AT_FIRST}.",
            ),
            click.option(
                "--only",
                metavar="FILTERS",
                help="Only items that match, such as 'category=news'. Default: all.",
            ),
            click.option(
                "--ignore-skips/--obey-skips", default=None, help="Ignore or obey skipHours and skipDays of the feed."
            ),
            click.option(
                "--ignore",
                multiple=True,
                metavar="NAME",
                callback=lambda _context, _option, names: tuple(filter(None, names)) if names else None,
                help="An element, or a ?parameter of addresses, whose change is no change of an item. May be repeated;"
                " an empty name ignores nothing.",
            ),
            click.option(
                "--history",
                type=click.IntRange(0, MAX_HISTORY),
                metavar="PAGES",
                help="Read so many older pages or archives of the feed at the first poll. Default: 0.",
            ),
            click.option(
                "--push/--no-push", default=None, help="Subscribe at the hub or cloud of the feed, or only poll."
            ),
            click.option(
                "--prefetch/--no-prefetch",
                default=None,
                help="Load the enclosures of new items in advance (docs/webfeeds-prefetch.md).",
            ),
            click.option(
                "--prefetch-first",
                type=click.IntRange(0),
                metavar="NUMBER",
                help="Load so many enclosures of the first document. Default: 1.",
            ),
            click.option(
                "--prefetch-rule",
                "prefetch_rules",
                multiple=True,
                metavar="RULE",
                callback=lambda _context, _option, rules: tuple(filter(None, rules)) if rules else None,
                help="A rule such as 'yes type=audio/* max=50MB', in place of prefetch.rules. May be repeated; an empty"
                " rule restores prefetch.rules.",
            ),
            click.option(
                "--prefetch-hold/--no-prefetch-hold",
                default=None,
                help="Publish new items when their enclosures have arrived or were given up, after 7 days at most.",
            ),
        )
    ):
        command = option(command)
    return command


def node_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--node`, which selects one of several sources with the same address."""
    return click.option("--node", help="The node of the source, if several nodes have this address.")(command)


def given(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that were given on the command line."""
    return {name: value for name, value in chosen.items() if value is not None}
