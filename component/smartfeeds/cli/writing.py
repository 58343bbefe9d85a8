"""Format, output file and report of `export`, `convert` and `merge`."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import click

from smartfeeds.app.formats import FORMATS
from smartfeeds.cli.common import output_option
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import SHOWN_LINES, exit_failed_if, print_err, print_json, print_lines
from smartfeeds.errors import ConfigError
from smartfeeds.formats.document_format import FeedExport
from smartfeeds.formats.feed_document import NO_DOCUMENT, FeedDocument

_MORE = "--json lists all of them"
Command = TypeVar("Command", bound=Callable[..., object])


def writing_options(command: Command) -> Command:
    """Add `--to`, `--output`, `--strict` and `--json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print a report as JSON. Requires --output."),
        click.option("--strict", is_flag=True, help="Exit with code 1 if data was lost or items were skipped."),
        output_option,
        click.option("--to", "form", type=click.Choice(list(FORMATS)), required=True, help="The output format."),
    ):
        command = option(command)
    return command


def check_report(output: Path | None, *, as_json: bool) -> None:
    """Raises UsageError if document and report would both go to standard output."""
    if as_json and output is None:
        raise click.UsageError(
            "--json prints its report on standard output; name a file for the document with --output"
        )


def write_out(form: str, job: FeedExport, output: Path | None) -> None:
    """Write the complete document or nothing. Raises ConfigError if the file cannot be written."""
    write_pieces(FORMATS[form].write(job), output)


def write_pieces(pieces: Iterable[bytes], output: Path | None) -> None:
    """Write a document that arrives in pieces, as `write_out` does."""
    with opened(output) as file:
        for piece in pieces:
            file.write(piece)


@contextmanager
def opened(output: Path | None) -> Iterator[BinaryIO]:
    """Yield the output file, or standard output. Raises ConfigError if it cannot be written."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not output.exists() or output.is_file():
        with whole_file(output) as file:
            yield file
        return
    try:
        with output.open("wb") as device:  # or a pipe
            yield device
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror}") from None


def finish(
    form: str,
    job: FeedExport,
    count: int,
    output: Path | None,
    document: FeedDocument = NO_DOCUMENT,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Report lost data, skipped items of the input document and warnings, as lines on standard error or as JSON.

    Exits with FAILED if `strict` and data was lost, or if no item of the input document could be read.
    """
    if as_json:
        _print_report(form, job, count, output, document)
    else:
        _print_lines(form, job, count, output, document)
    nothing = bool(document.skipped) and not document.items
    exit_failed_if(nothing or (strict and (job.losses or document.skipped)))


def _print_lines(form: str, job: FeedExport, count: int, output: Path | None, document: FeedDocument) -> None:
    """Print a line per item with lost data, per skipped item, and per warning."""
    name = FORMATS[form].name
    if output is not None:
        print_err(f"{output}: {name}, of a feed of {count} items.")
    texts: dict[str, list[str]] = {}
    for loss in job.losses:
        texts.setdefault(loss.item_id, []).append(loss.what)
    items = list(texts.items())
    print_lines(
        [f"not in {name}: {'; '.join(what)}{f' ({item})' if item else ''}" for item, what in items[:SHOWN_LINES]]
    )
    rest = Counter(what for _, losses in items[SHOWN_LINES:] for what in losses)
    more = [f"not in {name}, of {times} more items: {what}" for what, times in rest.most_common()]
    print_lines([*more, *([_MORE] if more else [])])
    print_lines([f"skipped item {skipped.index + 1}: {skipped.reason}" for skipped in document.skipped])
    print_lines([f"note: {warning}" for warning in _warnings(document)])


def _warnings(document: FeedDocument) -> list[str]:
    """Return the warnings about the document and about each item."""
    return [*document.warnings, *(f"{item.id}: {warning}" for item in document.items for warning in item.warnings)]


def _print_report(form: str, job: FeedExport, count: int, output: Path | None, document: FeedDocument) -> None:
    print_json(
        {
            "from": document.format,
            "to": FORMATS[form].name,
            "output": str(output),
            "items": count,
            "losses": [{"item": loss.item_id, "what": loss.what} for loss in job.losses],
            "skipped": [{"item": skipped.index + 1, "reason": skipped.reason} for skipped in document.skipped],
            "warnings": _warnings(document),
        }
    )
