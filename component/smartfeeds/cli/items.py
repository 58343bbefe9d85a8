"""`smartfeeds publish` and `smartfeeds item`: publishes, lists and removes items of a node."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import DOCUMENT, config_option, json_option, name_of
from smartfeeds.cli.item_rows import BRIEF, CUT, item_row, newest_items, rest_notes
from smartfeeds.cli.list_commands import list_options
from smartfeeds.cli.offline import act_as, named_or_admin, run_offline
from smartfeeds.console import Commands, print_err, print_result
from smartfeeds.core.model import MAX_WRITTEN_BYTES
from smartfeeds.core.text import is_xml_text
from smartfeeds.errors import Condition, DocumentError, FeedError
from smartfeeds.lists import print_rows

if TYPE_CHECKING:
    from smartfeeds.formats.xml import Element
    from smartfeeds.service.drafts import PayloadDraft
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.service.requests import Published


def _address(text: str) -> str:
    from smartfeeds.formats.links import is_base

    if text and not is_base(text):
        raise click.BadParameter(f"{text[:100]!r} is not a web address; give an http or https address")
    return text


_by_option = click.option(
    "--by", metavar="JID", help="The bare JID that acts. Default: the first of pubsub.admins, else the component."
)


@click.command("publish")
@click.argument("node")
@click.argument("text", required=False)
@click.option("--file", type=DOCUMENT, help="The file with the text; - is standard input.")
@click.option("--xml", is_flag=True, help="The input is an Atom entry or another XML payload, not plain text.")
@click.option("--id", "item_id", default="", help="The id of the item. An item with this id is replaced.")
@click.option("--title", default="", help="The title. Default: the first line of the text.")
@click.option("--link", type=_address, default="", metavar="ADDRESS", help="The web page that the entry is about.")
@click.option("--tag", "tags", multiple=True, help="A tag, which Atom and filters call a category. Repeatable.")
@_by_option
@config_option
@json_option
def publish_command(
    node: str,
    text: str | None,
    file: Path | None,
    item_id: str,
    title: str,
    link: str,
    tags: tuple[str, ...],
    by: str | None,
    config: Path | None,
    *,
    xml: bool,
    as_json: bool,
) -> None:
    """Publish TEXT, or the text in a file, as an item of NODE, and print the id of the item.

    If TEXT is - or missing, it is read from standard input. A running service notifies the subscribers within seconds.
    """
    from smartfeeds.formats.xml import parse_payload
    from smartfeeds.service.drafts import draft_of
    from smartfeeds.store.base import OpenMode

    if text is not None and file is not None:
        raise click.UsageError("give the text or --file, not both")
    if xml and (title or link or tags):
        raise click.UsageError("--title, --link and --tag are for plain text; with --xml write them into the entry")
    body = _read(file or Path("-")) if text is None or text == "-" else text
    if not is_xml_text("".join((body, title, link, *tags))):
        raise click.UsageError("the text contains characters that XML cannot carry, such as control characters")
    root = parse_payload(body.encode()) if xml else _entry(body, title, link, tags)
    work = partial(_publish, node=node, item_id=item_id, draft=draft_of(root), by=named_or_admin(config, by))
    published = run_offline(config, work, OpenMode.WRITE)
    result = {"node": node, "id": published.item_id, "created": published.created}
    print_result(published.item_id, result, as_json=as_json)
    if not as_json:
        print_err(f"{'Published' if published.created else 'Replaced'} in {node}.")


@click.group("item", cls=Commands)
def item_command() -> None:
    """List and remove items of a node; smartfeeds publish adds them."""


@item_command.command("list")
@click.argument("node")
@click.option(
    "--max", "most", type=click.IntRange(1, 100_000), default=20, show_default=True, help="The number of items."
)
@list_options
def list_items(node: str, most: int, config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List the newest items of NODE, the newest last. NODE may be a view, such as news?category=sport."""
    from smartfeeds.store.base import OpenMode

    # A filtered view may have to update the filter index, which is a write.
    newest = run_offline(config, lambda service: newest_items(service, node, most), OpenMode.WRITE)
    empty = f"There are no items in {node}."
    print_rows(list(map(item_row, newest.items)), as_json=as_json, empty=empty, wide=wide, brief=BRIEF, cut=CUT)
    for note in () if as_json else rest_notes(len(newest.items), newest.total):
        print_err(note)


@item_command.command("remove")
@click.argument("node")
@click.argument("item", metavar="ID")
@_by_option
@config_option
@json_option
def remove_item(node: str, item: str, by: str | None, config: Path | None, *, as_json: bool) -> None:
    """Retract the item ID of NODE. A feed keeps a tombstone of it, and subscribers are notified."""
    from smartfeeds.store.base import OpenMode

    run_offline(config, partial(_retract, node=node, item=item, by=named_or_admin(config, by)), OpenMode.WRITE)
    print_result(f"Retracted {item} from {node}.", {"node": node, "id": item}, as_json=as_json)


async def _publish(
    service: "FeedService", node: str, item_id: str, draft: "PayloadDraft", by: str | None
) -> "Published":
    from smartfeeds.service.answers import ask
    from smartfeeds.service.requests import Publish, Published

    request = Publish(act_as(service, by), service.policy.domain, node, item_id or None, draft, may_create=False)
    return await ask(service.handle, request, Published)


async def _retract(service: "FeedService", node: str, item: str, by: str | None) -> None:
    from smartfeeds.service.answers import ask
    from smartfeeds.service.requests import EmptyResult, Retract

    request = Retract(act_as(service, by), service.policy.domain, node, item, notify=True)
    await ask(service.handle, request, EmptyResult)


def _read(file: Path) -> str:
    """Return the text of a file up to the size that a payload can have. Raises DocumentError, FeedError."""
    try:
        with click.open_file(str(file), "rb") as stream:
            data: bytes = stream.read(MAX_WRITTEN_BYTES + 1)
        if len(data) > MAX_WRITTEN_BYTES:
            text = f"{name_of(file)} is too long; an item has at most {MAX_WRITTEN_BYTES} bytes"
            raise FeedError(Condition.PAYLOAD_TOO_BIG, text)
        return data.decode()
    except OSError as error:
        raise DocumentError(f"cannot read {name_of(file)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DocumentError(f"{name_of(file)} is not UTF-8; convert it first") from None


def _entry(text: str, title: str, link: str, tags: tuple[str, ...]) -> "Element":
    """Return an Atom entry. Raises UsageError for a text without visible characters."""
    from smartfeeds.formats.entry import EntryText, TextKind
    from smartfeeds.formats.post import Post, entry_of

    text, title = text.strip(), title.strip()
    if not text and not title:
        raise click.UsageError("the text is empty; give a text or --title")
    return entry_of(Post(title, EntryText(TextKind.TEXT, text), link, tags))
