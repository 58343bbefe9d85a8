"""The commands of the kernel, as rows of the table of commands (`app.commands`)."""

from typing import TYPE_CHECKING, Final

from smartfeeds.app.commands import CommandRow, CommandTopic

if TYPE_CHECKING:
    import click


def _bench() -> "click.Command":
    from smartfeeds.cli.bench import bench_command

    return bench_command


def _consumer() -> "click.Command":
    from smartfeeds.cli.consumer import consumer_command

    return consumer_command


def _db() -> "click.Command":
    from smartfeeds.cli.database import db_command

    return db_command


def _export() -> "click.Command":
    from smartfeeds.cli.import_export import export_command

    return export_command


def _follow() -> "click.Command":
    from smartfeeds.cli.follow import follow_command

    return follow_command


def _import() -> "click.Command":
    from smartfeeds.cli.import_export import import_command

    return import_command


def _init() -> "click.Command":
    from smartfeeds.cli.init import init_command

    return init_command


def _node() -> "click.Command":
    from smartfeeds.cli.nodes import node_command

    return node_command


def _item() -> "click.Command":
    from smartfeeds.cli.items import item_command

    return item_command


def _publish() -> "click.Command":
    from smartfeeds.cli.items import publish_command

    return publish_command


def _retract() -> "click.Command":
    from smartfeeds.cli.items import remove_item

    return remove_item


def _run() -> "click.Command":
    from smartfeeds.cli.serving import run_command

    return run_command


def _status() -> "click.Command":
    from smartfeeds.cli.serving import status_command

    return status_command


def _sub() -> "click.Command":
    from smartfeeds.cli.subscriptions import sub_command

    return sub_command


KERNEL: Final = (
    CommandRow(
        "bench",
        CommandTopic.TRYING,
        "Measure publishing, fan-out, pages and subscribing on this machine, and the same for Prosody and ejabberd.",
        _bench,
    ),
    CommandRow(
        "consumer",
        CommandTopic.SOURCES,
        "List the consumers that receive the changes of feeds, and retry those that failed.",
        _consumer,
        {
            "list": "List consumers: state, items that wait, age of the oldest in seconds, next attempt and last "
            "error.",
            "retry": "Make the next attempt for the consumer NAME now, also if the service had given it up.",
        },
    ),
    CommandRow(
        "db",
        CommandTopic.SERVICE,
        "Maintain the database.",
        _db,
        {"upgrade": "Upgrade the database to the schema of this version. smartfeeds run does the same when it starts."},
    ),
    CommandRow(
        "export", CommandTopic.DOCUMENTS, "Export all items of NODE as a document, with their ids and dates.", _export
    ),
    CommandRow(
        "follow",
        CommandTopic.FEEDS,
        "Follow the feed at ADDRESS, such as 'xmpp:feeds.example.org?;node=comments', and print every change.",
        _follow,
    ),
    CommandRow(
        "import",
        CommandTopic.DOCUMENTS,
        "Import the items of FILE (Atom, RSS, ActivityStreams, JSON Feed or OPML; - for standard input) into NODE.",
        _import,
    ),
    CommandRow(
        "init",
        CommandTopic.SERVICE,
        "Write a configuration with a new secret for the component DOMAIN, such as feeds.example.org.",
        _init,
    ),
    CommandRow(
        "item",
        CommandTopic.FEEDS,
        "List and remove items of a node; smartfeeds publish adds them.",
        _item,
        {
            "list": "List the newest items of NODE, the newest last.",
            "remove": "Retract the item ID of NODE.",
        },
    ),
    CommandRow(
        "node",
        CommandTopic.FEEDS,
        "List, show, create, configure, purge and remove nodes, and decide who may use them.",
        _node,
        {
            "affiliations": "List the affiliations of NODE by JID.",
            "allow": "Give the bare JID an affiliation with NODE, also if it was banned.",
            "create": "Create NODE.",
            "deny": "Ban the bare JID from NODE: it may neither read nor publish, and its subscriptions end.",
            "list": "List all nodes by name, with their numbers of items and subscriptions.",
            "purge": "Retract all items of NODE.",
            "remove": "Delete NODE with all its items, subscriptions and affiliations.",
            "set": 'Change options of NODE, such as title="Our news".',
            "show": "Show NODE: its counts, affiliations and current options.",
        },
        {"delete": "remove"},
    ),
    CommandRow(
        "publish",
        CommandTopic.FEEDS,
        "Publish TEXT, or the text in a file, as an item of NODE, and print the id of the item.",
        _publish,
    ),
    CommandRow("retract", CommandTopic.FEEDS, "Retract the item ID of NODE.", _retract, hidden=True),
    CommandRow(
        "run", CommandTopic.SERVICE, "Run the service until SIGTERM or Ctrl-C, or until an admin stops it.", _run
    ),
    CommandRow(
        "status",
        CommandTopic.SERVICE,
        "Print whether the service runs and is connected; exit code 1 if it is not.",
        _status,
    ),
    CommandRow(
        "sub",
        CommandTopic.PEOPLE,
        "List, add and remove subscriptions.",
        _sub,
        {
            "add": "Subscribe JID to NODE, or approve its request.",
            "list": "List subscriptions, to NODE or to all nodes, in the order of their creation.",
            "remove": "End all subscriptions of JID to NODE and its views.",
        },
    ),
)
