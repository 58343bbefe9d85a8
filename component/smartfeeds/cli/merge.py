"""`smartfeeds merge`: two FeedSync or SSE documents into one."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from smartfeeds.cli.reading import DOCUMENT, FileSpool, OpenSource, file_spool, named, open_source
from smartfeeds.cli.writing import check_report, opened
from smartfeeds.console import Exit, err, print_json
from smartfeeds.core.text import counted, is_nss, one_line, to_nss
from smartfeeds.errors import ConfigError
from smartfeeds.formats.loader import MAX_DOCUMENT_BYTES
from smartfeeds.sync.documents import FeedReader, Form, Piece
from smartfeeds.sync.joining import Joiner, Report, read_feed, write_feed
from smartfeeds.sync.merging import Outcome
from smartfeeds.sync.outlines import merge_outlines, read_sync_outline, write_sync_outline
from smartfeeds.sync.record import Edit
from smartfeeds.sync.sharing import Sharing

_SHOWN = 20


@click.command("merge")
@click.argument("local", type=DOCUMENT)
@click.argument("incoming", type=DOCUMENT)
@click.option(
    "--by",
    help="The endpoint that LOCAL belongs to, such as alice@example.org/desk: items of LOCAL that have no sync data "
    "get it, as made now by this endpoint.",
)
@click.option("--lenient", is_flag=True, help="Read dates of SSE in other zones than GMT.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file. Default: standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print a report as JSON. It needs --output.")
def merge_command(
    local: Path, incoming: Path, by: str | None, output: Path | None, *, lenient: bool, as_json: bool
) -> None:
    """Merge INCOMING into LOCAL (FeedSync or SSE in Atom, RSS 2.0 or OPML) and write the merged document.

    Items that were changed on both sides keep the version that wins and the other as a conflict. LOCAL and INCOMING
    stay as they are; what was refused, and why, is told on standard error.
    """
    check_report(output, as_json=as_json)
    if str(local) == str(incoming) == "-":
        raise click.UsageError("only one of the documents can be standard input")
    with file_spool() as spool, open_source(local) as mine, open_source(incoming) as theirs:
        if (mine.form is Form.OPML) != (theirs.form is Form.OPML):
            raise ConfigError("an outline and a feed do not merge: both have to be OPML, or both Atom or RSS")
        job = _Job(mine, theirs, spool, _edit(by), lenient)
        pieces, report, sharing = _outline(job) if mine.form is Form.OPML else _feed(job)
        with opened(output) as file:
            for piece in pieces:
                file.write(piece)
    _hints(sharing, report)
    if as_json:
        print_json(_as_json(local, incoming, output, report))
    else:
        _tell(report)
    taken = sum(report.outcomes.values())
    if report.refused and not taken:
        click.get_current_context().exit(Exit.FAILED)


def _edit(by: str | None) -> Edit | None:
    if by is None:
        return None
    if not by:
        raise ConfigError("--by names no endpoint")
    return Edit(time.time_ns() // 1000, by if is_nss(by) and "/" not in by else to_nss(by))


@dataclass(frozen=True, slots=True)
class _Job:
    local: OpenSource
    incoming: OpenSource
    spool: FileSpool
    edit: Edit | None
    lenient: bool


def _feed(job: _Job) -> tuple[Iterator[bytes], Report, Sharing]:
    joiner = Joiner(job.spool, job.local.form, job.edit, lenient=job.lenient)
    mine = _read(job.local, lambda piece, _form: joiner.add_local(piece), job)
    joiner.end_local()
    theirs = _read(job.incoming, joiner.add_incoming, job)
    joiner.report.note([*mine.notes, *theirs.notes])
    return write_feed(mine, joiner.results(), theirs), joiner.report, theirs.sharing


def _read(source: OpenSource, add: Callable[[Piece, Form], None], job: _Job) -> FeedReader:
    with named(source.name):
        return read_feed(source.chunks, add, lenient=job.lenient)


def _outline(job: _Job) -> tuple[Iterator[bytes], Report, Sharing]:
    if job.edit is not None:
        raise ConfigError("--by is for feeds: outlines without sync data stay as they are")
    sides = []
    for source in (job.local, job.incoming):
        with named(source.name):
            sides.append(read_sync_outline(_whole(source), lenient=job.lenient))
    report = Report()
    with named("the merged outline"):
        pieces = list(write_sync_outline(merge_outlines(sides[0], sides[1], report)))
    return iter(pieces), report, sides[1].sharing


def _whole(source: OpenSource) -> bytes:
    data = bytearray()
    for chunk in source.chunks:
        data += chunk
        if len(data) > MAX_DOCUMENT_BYTES:
            break
    return bytes(data)


def _hints(sharing: Sharing, report: Report) -> None:
    """What a publisher says to who reads its feed: for people, and nothing is opened by itself (FS-021)."""
    if sharing.since is not None:
        where = f": the complete one is {sharing.complete_link}" if sharing.complete_link else ""
        report.note([f"INCOMING is a partial feed, of changes since {sharing.since}{where}"])
    report.note(f"INCOMING takes items from {one.link} {one.title}".rstrip() for one in sharing.aggregated)


def _as_json(local: Path, incoming: Path, output: Path | None, report: Report) -> dict[str, object]:
    return {
        "local": str(local),
        "incoming": str(incoming),
        "output": str(output),
        **{outcome.value: report.outcomes[outcome] for outcome in Outcome},
        "conflicts": report.conflicts,
        "created": report.created,
        "without_sync": report.plain,
        "refused": [{"document": one.document, "item": one.index + 1, "reason": one.reason} for one in report.reasons],
        "notes": report.notes,
    }


def _tell(report: Report) -> None:
    counts = ", ".join(f"{report.outcomes[outcome]} {outcome.value}" for outcome in Outcome)
    parts = [
        counts,
        f"items that were compared have {counted(report.conflicts, 'conflict')}" if report.conflicts else "",
        f"{report.created} given sync data" if report.created else "",
        f"{report.plain} of INCOMING without sync data left out" if report.plain else "",
    ]
    err.print(one_line("merged: " + "; ".join(part for part in parts if part) + "."), markup=False)
    lines = [f"refused item {one.index + 1} of {one.document.upper()}: {one.reason}" for one in report.reasons]
    lines += [f"note: {text}" for text in report.notes]
    for line in lines[:_SHOWN]:
        err.print(one_line(line), markup=False)
    if len(lines) > _SHOWN:
        err.print(f"and {len(lines) - _SHOWN} more such lines; --json lists them", markup=False)
