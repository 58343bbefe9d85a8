"""`smartfeeds demo`: a server with an example feed, and two demonstrations."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    import click


def _demo() -> "click.Command":
    from smartfeeds.features.demo.commands import demo_command

    return demo_command


DEMO = Feature(
    "demo",
    needs=("accounts", "conflicts"),
    commands=(
        CommandRow(
            "demo",
            CommandTopic.TRYING,
            "Demonstrate the service on this machine, with a Prosody on loopback.",
            _demo,
            {
                "gap": "Lose notifications in three ways, and watch the follower detect and close the gaps.",
                "phone": "Be the reader of a running demo serve: print the chat messages that arrive, and send the "
                "lines "
                "that you type.",
                "post": "Write a post with this TITLE on the blog of a running demo serve.",
                "publish": "Publish an entry with this TITLE to the feed of a running demo serve.",
                "serve": "Start a Prosody, the service and a blog, fill a feed, and print commands to try.",
                "share": "Edit one feed at two services while they are apart, and watch them agree when both run "
                "again.",
            },
        ),
    ),
)
