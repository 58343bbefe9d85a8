"""`smartfeeds merge`: merges two FeedSync or SSE documents.

The items of feeds pass through a spool one by one, so the documents may have any size. Outlines are read as a whole,
because each refers to others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import DOCUMENT, output_option
from smartfeeds.cli.reading import OpenSource, file_spool, named, open_source, whole_document
from smartfeeds.cli.writing import check_report, opened
from smartfeeds.console import exit_failed_if, print_err, print_json, print_lines
from smartfeeds.core.text import counted, is_nss, to_nss
from smartfeeds.errors import ConfigError
from smartfeeds.system import now_us

if TYPE_CHECKING:
    from smartfeeds.sync.joining import Joiner, JoinReport
    from smartfeeds.sync.record import Edit
    from smartfeeds.sync.sharing import Sharing


@click.command("merge")
@click.argument("local", type=DOCUMENT)
@click.argument("incoming", type=DOCUMENT)
@click.option(
    "--by",
    help="The endpoint of LOCAL, such as alice@example.org/desk. Items of LOCAL without sync data receive it, as if "
    "this endpoint had created them now.",
)
@click.option("--lenient", is_flag=True, help="Accept SSE dates in time zones other than GMT.")
@output_option
@click.option("--json", "as_json", is_flag=True, help="Print a report as JSON. Requires --output.")
def merge_command(
    local: Path, incoming: Path, by: str | None, output: Path | None, *, lenient: bool, as_json: bool
) -> None:
    """Merge INCOMING into LOCAL (FeedSync or SSE in Atom, RSS 2.0 or OPML) and write the merged document.

    An item that was changed on both sides keeps the winning version, and the other version as a conflict. LOCAL and
    INCOMING are not changed. Standard error lists rejected items with the reasons.
    """
    from smartfeeds.sync.document_reader import FeedFormat
    from smartfeeds.sync.joining import Joiner

    check_report(output, as_json=as_json)
    if str(local) == str(incoming) == "-":
        raise click.UsageError("only one of LOCAL and INCOMING can be standard input")
    with file_spool() as spool, open_source(local) as mine, open_source(incoming) as theirs:
        if (mine.form is FeedFormat.OPML) != (theirs.form is FeedFormat.OPML):
            raise ConfigError("cannot merge an outline with a feed; both documents must be OPML, or both Atom or RSS")
        if mine.form is FeedFormat.OPML:
            if by is not None:
                raise ConfigError("--by is not supported for OPML; outlines without sync data are copied unchanged")
            pieces, report, sharing = _merge_outlines(mine, theirs, lenient=lenient)
        else:
            joiner = Joiner(spool, mine.form, _edit(by), lenient=lenient)
            pieces, report, sharing = _merge_feeds(mine, theirs, joiner, lenient=lenient)
        with opened(output) as file:
            for piece in pieces:
                file.write(piece)
    _hints(sharing, report)
    if as_json:
        print_json(_as_json(local, incoming, output, report))
    else:
        _print_report(report)
    merge_count = sum(report.outcomes.values())
    exit_failed_if(report.refused and not merge_count)


def _edit(by: str | None) -> "Edit | None":
    from smartfeeds.sync.record import Edit

    if by is None:
        return None
    if not by:
        raise ConfigError("--by is empty; name an endpoint such as alice@example.org/desk")
    return Edit(now_us(), by if is_nss(by) and "/" not in by else to_nss(by))


def _merge_feeds(
    local: OpenSource, incoming: OpenSource, joiner: "Joiner", *, lenient: bool
) -> "tuple[Iterator[bytes], JoinReport, Sharing]":
    from smartfeeds.sync.joining import read_feed, write_feed

    readers = []
    for source, add in ((local, lambda piece, _form: joiner.add_local(piece)), (incoming, joiner.add_incoming)):
        with named(source.name):
            readers.append(read_feed(source.chunks, add, lenient=lenient))
        if source is local:
            joiner.end_local()
    mine, theirs = readers
    joiner.report.note([*mine.notes, *theirs.notes])
    return write_feed(mine, joiner.results(), theirs), joiner.report, theirs.sharing


def _merge_outlines(
    local: OpenSource, incoming: OpenSource, *, lenient: bool
) -> "tuple[Iterator[bytes], JoinReport, Sharing]":
    from smartfeeds.sync.joining import JoinReport
    from smartfeeds.sync.sync_outline import merge_outlines, read_sync_outline, write_sync_outline

    sides = []
    for source in (local, incoming):
        with named(source.name):
            sides.append(read_sync_outline(whole_document(source), lenient=lenient))
    report = JoinReport()
    with named("the merged outline"):
        pieces = list(write_sync_outline(merge_outlines(sides[0], sides[1], report)))
    return iter(pieces), report, sides[1].sharing


def _hints(sharing: "Sharing", report: "JoinReport") -> None:
    """Add notes from sx:sharing for users. No address in it is opened automatically (FS-021)."""
    if sharing.is_partial:
        where = f"; the complete feed is at {sharing.complete_link}" if sharing.complete_link else ""
        report.note([f"INCOMING is a partial feed with changes since {sharing.since}{where}"])
    report.note(f"INCOMING aggregates {feed.link} {feed.title}".rstrip() for feed in sharing.aggregated)


def _as_json(local: Path, incoming: Path, output: Path | None, report: "JoinReport") -> dict[str, object]:
    from smartfeeds.sync.merging import Outcome

    return {
        "local": str(local),
        "incoming": str(incoming),
        "output": str(output),
        **{outcome.value: report.outcomes[outcome] for outcome in Outcome},
        "conflicts": report.conflicts,
        "created": report.created,
        "without_sync": report.plain,
        "refused": [
            {"document": item.document, "item": item.index + 1, "reason": item.reason} for item in report.reasons
        ],
        "notes": report.notes,
    }


def _print_report(report: "JoinReport") -> None:
    from smartfeeds.sync.merging import Outcome

    counts = ", ".join(f"{report.outcomes[outcome]} {outcome.value}" for outcome in Outcome)
    parts = [
        counts,
        f"items that were compared have {counted(report.conflicts, 'conflict')}" if report.conflicts else "",
        f"{report.created} received sync data" if report.created else "",
        f"{report.plain} of INCOMING ignored, without sync data" if report.plain else "",
    ]
    print_err("merged: " + "; ".join(part for part in parts if part) + ".")
    lines = [f"refused item {item.index + 1} of {item.document.upper()}: {item.reason}" for item in report.reasons]
    lines += [f"note: {text}" for text in report.notes]
    print_lines(lines)
