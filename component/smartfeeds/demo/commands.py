"""`smartfeeds demo`: the service and the two demonstrations on this machine, with nothing to set up."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.console import Commands, Exit, out, progress_bar, run_async
from smartfeeds.demo.person import DemoUser
from smartfeeds.demo.serve import NODE, SERVICE, read_scene, serve

if TYPE_CHECKING:
    from smartfeeds.demo.gap import GapDemo
    from smartfeeds.demo.share import SharingDemo

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".run"),
    show_default=True,
    help="Where everything is kept.",
)


@click.group("demo", cls=Commands)
def demo_command() -> None:
    """See it work on this machine, with a Prosody of its own on loopback."""


@demo_command.command("serve")
@_FOLDER
def demo_serve(folder: Path) -> None:
    """Start a Prosody and the component, fill a feed, and say what to try. Ctrl-C stops all of it."""
    run_async(serve(folder, out, progress_bar()))


@demo_command.command("publish")
@click.argument("title")
@_FOLDER
def demo_publish(title: str, folder: Path) -> None:
    """Publish an entry with this TITLE to the feed of a running demo serve."""
    item_id = run_async(_publish(folder, title))
    out.print(f"Published {item_id} to {NODE}.", markup=False)


async def _publish(folder: Path, title: str) -> str:
    scene = read_scene(folder)
    person = DemoUser(scene.owner, scene.client_port)
    await person.login()
    try:
        return await person.publish(SERVICE, NODE, title)
    finally:
        await person.logout()


@demo_command.command("gap")
def demo_gap() -> None:
    """Lose notifications in every way there is, and watch the follower find and close the gaps.

    Uses a real Prosody, the component as a process of its own, and a follower. Ends with a comparison of mirror and
    feed; exit code 1 where they differ.
    """
    from smartfeeds.demo.gap import GapDemo

    _play(GapDemo)


@demo_command.command("share")
def demo_share() -> None:
    """Edit one feed at two services while they are apart, and watch them agree when they meet again.

    Uses a real Prosody, two services as processes of their own, and a mirror between them. Ends with a comparison of
    their stores; exit code 1 where they differ, or have something else than was written.
    """
    from smartfeeds.demo.share import SharingDemo

    _play(SharingDemo)


def _play(demo: "type[GapDemo | SharingDemo]") -> None:
    with tempfile.TemporaryDirectory(prefix="smartfeeds-demo-") as folder:
        if not run_async(demo(Path(folder), out).perform()):
            click.get_current_context().exit(Exit.FAILED)
