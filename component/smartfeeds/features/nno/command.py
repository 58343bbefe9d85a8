"""`smartfeeds nno`: prints the newest entries of many feeds, found through their ESS files.

A source that cannot be read is reported and skipped. The command fails if no source could be used.
"""

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from smartfeeds.cli.common import FILE, config_option, json_option, output_option, private_option, refuse_devices
from smartfeeds.cli.fetching import allowed_networks
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import exit_failed_if, print_err, print_lines, run_async
from smartfeeds.core.model import Item
from smartfeeds.core.text import one_line
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.core.web_address import is_web
from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.features.documents.ess import MAX_BYTES, NnoEntry, build_time, read_either, write_nno
from smartfeeds.system import now_us

if TYPE_CHECKING:
    from smartfeeds.features.nno.entries import Aggregator, EntryRequest
    from smartfeeds.features.nno.ess_files import EssSource
    from smartfeeds.features.nno.results import FullEntry
    from smartfeeds.net.clients import Fetcher
    from smartfeeds.net.fetch import FetchLimits

_STEP: Final = 500  # files between two moves of the bar


@dataclass(slots=True)
class _NnoRun:
    """The entries that a run has collected, and the sources that it skipped."""

    aggregator: "Aggregator"
    skipped: list[tuple[str, str]] = field(default_factory=list)
    used: int = 0


@click.command("nno")
@click.argument("sources", nargs=-1, required=True, metavar="URL|FILE|FOLDER...")
@click.option(
    "-n", "--entries", type=click.IntRange(1, 100_000), default=50, show_default=True, help="The number of entries."
)
@click.option("--full", is_flag=True, help="Download the feeds of these entries and print the entries themselves.")
@click.option("--cache", type=FILE, help="A file that stores the results of --full for the next run.")
@output_option
@private_option
@config_option
@json_option
def nno_command(
    sources: tuple[str, ...],
    entries: int,
    cache: Path | None,
    output: Path | None,
    config: Path | None,
    *,
    full: bool,
    allow_private: bool,
    as_json: bool,
) -> None:
    """Print the newest entries of many feeds as an NNO file. ESS files tell which entries these are.

    A source is the address of an ESS or NNO file, or of a web page that links to one; or a file; or a folder, whose
    files and subfolders are read. Standard error lists the sources that cannot be read.
    """
    from smartfeeds.features.nno.entries import Aggregator
    from smartfeeds.net.fetch import FetchLimits, display_url

    if cache is not None and not full:
        raise click.UsageError("--cache requires --full, whose results it stores")
    for path in filter(None, (cache, output)):
        refuse_devices(path)
    run = _NnoRun(Aggregator(entries))
    allowed = allowed_networks(config, allow_private=allow_private) if any(map(is_web, sources)) or full else ()
    limits = FetchLimits(allowed=allowed)
    text = run_async(_nno(run, sources, limits, cache, full=full, as_json=as_json))
    if output is None:
        click.echo(text)
    else:
        _write(output, text.encode() + b"\n")
    print_lines([f"skipped {display_url(source)}: {reason}" for source, reason in run.skipped], "skipped {} more")
    exit_failed_if(not run.used)


async def _nno(
    run: _NnoRun, sources: Sequence[str], limits: "FetchLimits", cache: Path | None, *, full: bool, as_json: bool
) -> str:
    from smartfeeds.features.nno.ess_files import EssSource, Puller
    from smartfeeds.features.nno.results import dump_results
    from smartfeeds.net.clients import Fetcher

    async with AsyncExitStack() as stack:
        web = {url: EssSource(url) for url in sources if is_web(url)}
        fetcher = await stack.enter_async_context(Fetcher(limits)) if full or web else None
        if web and fetcher is not None:
            await _fetch_all(run, fetcher, web)
        for source in sources:
            if source not in web:
                _read_all(run, source)
                continue
            for file in web[source].files:
                run.aggregator.add(file)
        entries = run.aggregator.result()
        at_us = now_us()
        if not full or fetcher is None:
            return _json(run, [(entry, None) for entry in entries], at_us) if as_json else _outline(entries, at_us)
        puller = Puller(fetcher, _cached(cache))
        pulled = await puller.pull(entries)
        run.skipped += [(url, failure.reason) for url, failure in pulled.failed.items()]
        if cache is not None:
            _write(cache, dump_results(puller.known))
        print_err(f"{pulled.downloads} feeds downloaded")
        return _json(run, pulled.results, at_us) if as_json else "\n".join(_line(*result) for result in pulled.results)


async def _fetch_all(run: _NnoRun, fetcher: "Fetcher", web: "dict[str, EssSource]") -> None:
    from smartfeeds.net.fetch import FetchError
    from smartfeeds.terminal import progress_bar

    with progress_bar() as progress:
        task = progress.add_task("ESS files", total=len(web))

        async def refresh(source: "EssSource") -> None:
            try:
                await source.refresh(fetcher, run.aggregator.limit)
                run.used += 1
            except FetchError as error:
                run.skipped.append((source.url, error.reason))
            except FeedError as error:
                run.skipped.append((source.url, error.text or error.condition.value))
            progress.advance(task)

        await asyncio.gather(*(refresh(source) for source in web.values()))


def _read_all(run: _NnoRun, source: str) -> None:
    """Read a file, or all files in a folder."""
    from smartfeeds.terminal import progress_bar

    if not Path(source).exists():
        run.skipped.append((source, "does not exist"))
        return
    paths = list(_files(source)) if Path(source).is_dir() else [source]
    with progress_bar() as progress:
        task = progress.add_task(source, total=len(paths))
        for start in range(0, len(paths), _STEP):
            chunk = paths[start : start + _STEP]
            for path in chunk:
                _read(run, path)
            progress.advance(task, len(chunk))


def _files(folder: str) -> Iterator[str]:
    """Yield all files below a folder in the order of their names, without hidden files."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = f"{place}{os.sep}{name}"
            if not name.startswith(".") and os.path.isfile(path):  # noqa: PTH113 - half the time of a Path
                yield path


def _read(run: _NnoRun, path: str) -> None:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the time of a Path
            data = file.read(MAX_BYTES + 1)
        for ess in read_either(data):
            run.aggregator.add(ess)
        run.used += 1
    except OSError as error:
        run.skipped.append((path, f"cannot be read: {error.strerror}"))
    except FeedError as error:
        run.skipped.append((path, error.text or error.condition.value))


def _outline(entries: Sequence[NnoEntry], at_us: int) -> str:
    file = write_nno(entries, at_us)
    if file.count < len(entries):
        print_err(
            f"the file has the newest {file.count} of {len(entries)} entries, because its limit is {MAX_BYTES} bytes"
        )
    return file.data.decode()


def _json(run: _NnoRun, results: "Sequence[tuple[NnoEntry, FullEntry | None]]", at_us: int) -> str:
    rows = [
        {
            "feed": entry.feed_url,
            "time": format_datetime(entry.time_s * US_PER_S),
            "checksum": entry.checksum,
            **(_full_json(full) if full else {}),
        }
        for entry, full in results
    ]
    skipped = [{"source": source, "reason": reason} for source, reason in run.skipped]
    content = {"build_time": build_time(at_us), "entries": rows, "skipped": skipped}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _full_json(full_entry: "FullEntry") -> dict[str, object]:
    title, link = _title_and_link(full_entry)
    return {
        "id": full_entry.item.id,
        "title": title,
        "link": link,
        "feed_title": full_entry.feed_title,
        "is_updated": full_entry.updated,
        "entry": full_entry.item.payload.decode(),
    }


def _line(entry: NnoEntry, full_entry: "FullEntry | None") -> str:
    when = format_datetime(entry.time_s * US_PER_S)
    if full_entry is None:
        return one_line(f"{when}  (not found)  {entry.feed_url}")
    title, link = _title_and_link(full_entry)
    mark = " (updated)" if full_entry.updated else ""
    return one_line(f"{when}  {title or '(no title)'}{mark}  {link or full_entry.item.id}")


def _title_and_link(full_entry: "FullEntry") -> tuple[str, str]:
    from smartfeeds.formats.entry import read_entry

    entry = read_entry(Item(0, full_entry.item.id, 0, 0, full_entry.item.payload, ""))
    return entry.title.plain, next((link.href for link in entry.links if link.rel == "alternate"), "")


def _cached(cache: Path | None) -> "dict[EntryRequest, FullEntry]":
    from smartfeeds.features.nno.results import load_results

    if cache is None or not cache.exists():
        return {}
    try:
        return load_results(cache.read_bytes())[0]
    except OSError as error:
        raise ConfigError(f"cannot read {cache}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{cache} is not a cache file ({error}); remove it or name another file") from None


def _write(path: Path, data: bytes) -> None:
    with whole_file(path) as file:
        file.write(data)
