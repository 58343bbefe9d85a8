"""`smartfeeds convert`: converts a document from one format to another, without a node."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import DOCUMENT
from smartfeeds.cli.reading import base_option, read_file
from smartfeeds.cli.writing import check_report, finish, write_out, writing_options
from smartfeeds.core.model import Item
from smartfeeds.system import now_us

if TYPE_CHECKING:
    from smartfeeds.formats.feed_document import FeedDocument, ImportedItem


@click.command("convert")
@click.argument("file", type=DOCUMENT)
@base_option
@writing_options
def convert_command(file: Path, base: str, form: str, output: Path | None, *, strict: bool, as_json: bool) -> None:
    """Write the feed in FILE (Atom, RSS, ActivityStreams, JSON Feed or OPML; - for standard input) in another format.

    Standard error reports data that the other format cannot represent, and input that was skipped or repaired.
    """
    from smartfeeds.formats.document_format import FeedExport
    from smartfeeds.formats.feed_details import head_of

    check_report(output, as_json=as_json)
    document = read_file(file, base)
    items = items_of(document)
    head = head_of(document, max((item.modified_us for item in items), default=0))
    if form == "ess" and base:
        head = replace(head, self_link=base)  # an ESS file names the address of its feed
    job = FeedExport(head, items, now_us())
    write_out(form, job, output)
    finish(form, job, len(items), output, document, strict=strict, as_json=as_json)


def items_of(document: "FeedDocument") -> list[Item]:
    """Return the items as a node would store them, oldest first.

    An item without a date gets the date of its older neighbour (`dates_of`), or 1970-01-01 if no item has a date. So
    each conversion of a document gives the same dates (A-122).
    """
    from smartfeeds.formats.feed_document import dates_of

    items = document.oldest_first()
    dates = zip(items, dates_of(items), strict=True)
    return [_item(number, item, made_us or 0) for number, (item, made_us) in enumerate(dates, start=1)]


def _item(number: int, entry: "ImportedItem", date_us: int) -> Item:
    from smartfeeds.formats import atom
    from smartfeeds.formats.payload import Payload, complete_entry

    changed_us = date_us if entry.time_us is None else entry.time_us
    created_us = changed_us if entry.published_us is None else entry.published_us
    payload = entry.payload
    if entry.deleted and not payload.shape.deletion:
        payload = Payload(atom.tombstone(entry.id, changed_us, payload))
    payload = complete_entry(payload, entry.id, changed_us)
    return Item(number, entry.id, created_us, changed_us, payload, "", entry.deleted)
