"""`smartfeeds demo`: the service and two demonstrations on this machine, without any set-up."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.console import Commands, exit_failed_if, print_out, run_async
from smartfeeds.features.demo.folder import FOLDER

if TYPE_CHECKING:
    from smartfeeds.features.demo.gap import GapDemo
    from smartfeeds.features.demo.serve import Scene
    from smartfeeds.features.demo.share import SharingDemo

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(FOLDER),
    show_default=True,
    help="The folder of all data.",
)

_FOUND_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"The folder of demo serve. Default: {FOLDER} here, in a folder above, or beside the installation.",
)


@click.group("demo", cls=Commands)
def demo_command() -> None:
    """Demonstrate the service on this machine, with a Prosody on loopback."""


@demo_command.command("serve")
@_FOLDER
def demo_serve(folder: Path) -> None:
    """Start a Prosody, the service and a blog, fill a feed, and print commands to try. Ctrl-C stops everything."""
    from smartfeeds.features.demo.serve import serve
    from smartfeeds.terminal import out, progress_bar

    run_async(serve(folder, out, progress_bar()))


@demo_command.command("publish")
@click.argument("title")
@_FOUND_FOLDER
def demo_publish(title: str, folder: Path | None) -> None:
    """Publish an entry with this TITLE to the feed of a running demo serve."""
    from smartfeeds.features.demo.serve import NODE, find_folder

    item_id = run_async(_publish(folder or find_folder(), title))
    print_out(f"Published {item_id} to {NODE}.")


async def _publish(folder: Path, title: str) -> str:
    from smartfeeds.features.demo.person import DemoUser
    from smartfeeds.features.demo.serve import NODE, SERVICE, running_scene

    scene = running_scene(folder)
    person = DemoUser(scene.owner, scene.client_port)
    await person.login()
    try:
        return await person.publish(SERVICE, NODE, title)
    finally:
        await person.logout()


@demo_command.command("post")
@click.argument("title")
@click.option("--text", default="", help="The text of the post.")
@_FOUND_FOLDER
def demo_post(title: str, text: str, folder: Path | None) -> None:
    """Write a post with this TITLE on the blog of a running demo serve."""
    from smartfeeds.features.demo.blog import publish_post
    from smartfeeds.features.demo.serve import find_folder, running_scene

    scene = running_scene(folder or find_folder())
    address = run_async(publish_post(scene.blog_url, scene.secret, title, text))
    print_out(f"Posted {address}")


@demo_command.command("phone")
@_FOUND_FOLDER
def demo_phone(folder: Path | None) -> None:
    """Be the reader of a running demo serve: print the chat messages that arrive, and send the lines that you type."""
    from smartfeeds.features.demo.serve import find_folder, running_scene

    run_async(_chat(running_scene(folder or find_folder())))


async def _chat(scene: "Scene") -> None:
    # Made here, because a client belongs to the event loop that runs.
    from smartfeeds.features.demo.person import DemoUser
    from smartfeeds.features.demo.phone import Phone
    from smartfeeds.features.demo.serve import SERVICE

    person = DemoUser(scene.reader, scene.client_port)
    await Phone(person, SERVICE, _print_lines).chat()


def _print_lines(text: str) -> None:
    for line in text.split("\n"):
        print_out(line)  # which replaces control characters, and would join the lines


@demo_command.command("gap")
def demo_gap() -> None:
    """Lose notifications in three ways, and watch the follower detect and close the gaps.

    The demonstration uses a real Prosody, the service as a separate process, and a follower. At the end it compares
    the mirror with the feed; exit code 1 if they differ.
    """
    from smartfeeds.features.demo.gap import GapDemo

    _play(GapDemo)


@demo_command.command("share")
def demo_share() -> None:
    """Edit one feed at two services while they are apart, and watch them agree when both run again.

    The demonstration uses a real Prosody, two services as separate processes, and a mirror between them. At the end it
    compares their databases; exit code 1 if they differ from each other or from the expected versions.
    """
    from smartfeeds.features.demo.share import SharingDemo

    _play(SharingDemo)


def _play(demo: "type[GapDemo | SharingDemo]") -> None:
    from smartfeeds.terminal import out

    with tempfile.TemporaryDirectory(prefix="smartfeeds-demo-") as folder:
        exit_failed_if(not run_async(demo(Path(folder), out).perform()))
