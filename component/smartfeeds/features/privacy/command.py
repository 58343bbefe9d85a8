"""`smartfeeds gdpr`: exports and erases the data of a person, and shows which followers have confirmed the erasure.

`erase` may run beside a service: it repeats the steps of the job (`erasing`) until the job has ended or waits too long.
Then it removes the bytes of deleted rows from the files of the database (`scrub`, `postgres_scrub`).
"""

import asyncio
import time
import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from smartfeeds.cli.common import FILE, bare_jid, config_option, json_option, read_settings, yes_option
from smartfeeds.cli.offline import read_offline, run_offline
from smartfeeds.cli.reading import spooled_pieces
from smartfeeds.cli.whole_file import whole_file
from smartfeeds.console import Commands, exit_failed_if, print_json, print_out, print_result
from smartfeeds.core.blocklist import same_addresses
from smartfeeds.core.person import Person
from smartfeeds.errors import Condition, ConfigError, FeedError
from smartfeeds.features.privacy.scrub import ScrubResult

if TYPE_CHECKING:
    from smartfeeds.app.config_store import StoreSettings
    from smartfeeds.features.privacy.erasing import ErasureStatus, LeftItem
    from smartfeeds.features.privacy.erasures import Erasure, ErasureSettings
    from smartfeeds.service.context import Context
    from smartfeeds.service.feeds import FeedService
    from smartfeeds.store.base import ReadTx

WAIT_S: Final = 30.0  # a running service sends deletions within seconds
_PAUSE_S: Final = 0.5
_TRANSFER: Final = "transfer="
_OUTSIDE: Final = (
    "Outside the database, and not erased: backups, logs, replicas and archived log segments of the database, the"
    " configuration file, copies at readers, and texts of others that mention the JID."
)
_TEXT_REASONS: Final = {"node.name": "the name of a node cannot change; delete the node if it is that of the person"}
_SCRUBBED: Final = {
    ScrubResult.CLEAN: "The bytes of deleted rows are removed from the database files.",
    ScrubResult.TOO_LARGE: (
        "The database is large and the service runs, so old bytes remain in free pages; stop the service and repeat"
        " the command."
    ),
    ScrubResult.BUSY: "The write-ahead log is in use, so old bytes remain in it; repeat the command.",
}
_LOG: Final = "The write-ahead log, its archive and the replicas have old bytes until their segments are removed."
_SCRUBBED_ON_POSTGRES: Final = {
    ScrubResult.CLEAN: f"The bytes of deleted rows are removed from the tables of PostgreSQL. {_LOG}",
    ScrubResult.TOO_LARGE: (
        "The database is large, so old bytes remain in its tables; run VACUUM (FULL, ANALYZE) when the service may stop"
        f" for it. {_LOG}"
    ),
    ScrubResult.BUSY: (
        "A transaction, a standby or a replication slot may still read old rows, so they remain; repeat the command"
        f" later. {_LOG}"
    ),
}


@click.group("gdpr", cls=Commands)
def gdpr_command() -> None:
    """Export or erase the data of a person."""


@gdpr_command.command("export")
@click.argument("jid", type=bare_jid)
@click.option("--output", type=FILE, required=True, help="The new zip file. It contains Atom and JSON.")
@config_option
@json_option
def export(jid: str, output: Path, config: Path | None, *, as_json: bool) -> None:
    """Write everything that the store has of the bare JID to a zip file."""
    if output.exists():
        raise ConfigError(f"{output} exists already; name another file")
    person = Person(jid)
    has_data = run_offline(config, partial(_export, person=person, output=output))
    empty = f"The store has no data of {jid}. The files in {output} are empty."
    text = f"The data of {jid} is in {output}." if has_data else empty
    result = {"jid": jid, "file": str(output), "has_data": has_data, "other_spellings": _other_spellings(person)}
    print_result(text, result, as_json=as_json)
    if not as_json:
        _print_other_spellings(person)


async def _export(service: "FeedService", person: Person, output: Path) -> bool:
    """Writes the file. Returns whether it contains data of the person."""
    from smartfeeds.features.privacy.personal_export import export_items, export_rows, write_parts

    # Each part is a read of its own, and waits on disk: a person may have a million items.
    has_data = False
    with spooled_pieces() as items, spooled_pieces() as entries, spooled_pieces() as versions:
        after_no: int | None = 0
        while after_no is not None:
            part = await service.read(partial(export_items, person=person, after_no=after_no))
            items.extend(part.items)
            entries.extend(part.entries)
            versions.extend(part.versions)
            has_data = has_data or bool(part.items or part.versions)
            after_no = part.after_no
        rows = await service.read(lambda tx, context: export_rows(tx, context, person))
        files = await service.read(lambda _, context: write_parts(context, person, rows, items, entries, versions))
        with whole_file(output, private=True) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, pieces in files:
                with archive.open(name, "w", force_zip64=True) as member:
                    for piece in pieces:
                        member.write(piece)
    return has_data or any(map(_has_data, rows.values()))


def _has_data(value: object) -> bool:
    """Returns whether a JSON value of the export has any content; a mapping has content if one of its values has."""
    return any(map(_has_data, value.values())) if isinstance(value, Mapping) else bool(value)


@gdpr_command.command("erase")
@click.argument("jid", type=bare_jid)
@click.option("--nodes", default="", help="For nodes that only the JID owns: delete, or transfer=JID.")
@click.option("--now", is_flag=True, help="Do not wait until followers have received the deletions.")
@click.option("--block", is_flag=True, help="Block the JID for ever. The store has a salted digest of it.")
@yes_option
@config_option
@json_option
def erase(jid: str, nodes: str, config: Path | None, *, now: bool, block: bool, yes: bool, as_json: bool) -> None:
    """Erase the bare JID: its items become tombstones, its rows are removed, histories lose its name.

    The command continues an erasure that was interrupted. It may run beside the service.
    """
    from smartfeeds.features.privacy.erasures import ErasurePhase, ErasureSettings
    from smartfeeds.store.base import OpenMode

    settings = ErasureSettings(_nodes(nodes), now, block)
    if not yes:
        click.confirm(f"Erase all data of {jid}? This cannot be undone.", abort=True, err=True)
    person, store = Person(jid), read_settings(config).store
    had_data, job, left = run_offline(config, lambda service: _erase(service, person, settings, store), OpenMode.WRITE)
    if as_json:
        _print_erased(jid, job, left, store, had_data=had_data)
        exit_failed_if(job.is_open)
        return
    if job.is_open and job.phase is ErasurePhase.NODES:
        print_out(
            f"The erasure of {jid} waits: the other owners of a node have left meanwhile. Repeat the command, which"
            " names the node."
        )
        exit_failed_if(job)
    if job.is_open:
        print_out(
            f"The erasure of {jid} waits until followers have received the deletions. The service continues it. Repeat"
            f" the command when smartfeeds gdpr status {jid} shows the phase done: it then removes the bytes of deleted"
            " rows. To wait no longer, repeat it with --now."
        )
        exit_failed_if(job)
    print_out(f"{jid} is erased." if had_data else f"Nothing of {jid} was left to erase.")
    for name, count in sorted(job.counts.items()):
        print_out(f"{name}: {count}")
    _print_left(job, left)
    print_out(_scrub(store))
    print_out(_OUTSIDE)
    print_out(f"Removed files of feeds leave {store.files_folder} at the next clean-up of the service.")
    _print_other_spellings(person)


def _print_left(job: "Erasure", left: "Sequence[LeftItem]") -> None:
    """Prints where the address still is, so that the operator can look at it."""
    from smartfeeds.features.privacy.erasures import LEFT_SHOWN, LeftReason

    for item in left:
        place = f"node {item.node}" if item.node else "a deleted node"
        print_out(f"left: item {item.item_id} of {place}: {item.reason.value}")
    if len(job.left) == LEFT_SHOWN:
        print_out(f"left: the first {LEFT_SHOWN} items are listed; the counts have all")
    for place, count in sorted(job.left_texts.items()):
        print_out(f"left: {place}: {count}: {_TEXT_REASONS.get(place, LeftReason.JOINED.value)}")


def _left_values(job: "Erasure", left: "Sequence[LeftItem]") -> dict[str, Any]:
    """The items and texts that still have the address, for JSON."""
    return {
        "left": [{"node": item.node, "item": item.item_id, "reason": item.reason.value} for item in left],
        "left_texts": dict(sorted(job.left_texts.items())),
    }


def _print_erased(
    jid: str, job: "Erasure", left: "Sequence[LeftItem]", store: "StoreSettings", *, had_data: bool
) -> None:
    """Print the erasure as JSON. `advice` is what the operator has to know or to do."""
    advice = [] if job.is_open else [_scrub(store), _OUTSIDE]
    print_json(
        {
            "jid": jid,
            "phase": job.phase.value,
            "had_data": had_data,
            "counts": dict(sorted(job.counts.items())),
            **_left_values(job, left),
            "advice": advice,
            "other_spellings": _other_spellings(Person(jid)),
        }
    )


def _other_spellings(person: Person) -> list[str]:
    return [str(jid) for jid in same_addresses(person.address)[1:]]


def _print_other_spellings(person: Person) -> None:
    """A server may name itself by letters or in ASCII, and then the service knows two users."""
    if others := _other_spellings(person):
        print_out(f"Servers may also spell this address {' or '.join(others)}: repeat the command for this spelling.")


def _nodes(text: str) -> str:
    from smartfeeds.features.privacy.erasures import DELETE_NODES

    if text in ("", DELETE_NODES):
        return text
    if text.startswith(_TRANSFER):
        return bare_jid(text.removeprefix(_TRANSFER))
    raise click.BadParameter(f"{text!r} is neither delete nor transfer=JID", param_hint="--nodes")


async def _erase(
    service: "FeedService", person: Person, settings: "ErasureSettings", store: "StoreSettings"
) -> "tuple[bool, Erasure, list[LeftItem]]":
    """Returns whether there was data to erase, the job, and the items that it has left."""
    from smartfeeds.features.privacy import rows as privacy_rows
    from smartfeeds.features.privacy.erasing import begin_erasure, continue_erasure

    former = await service.read(lambda tx, _: privacy_rows.erasure(tx, person))
    begun = await service.write(lambda tx, context: begin_erasure(tx, context, person, settings))
    until_s = time.monotonic() + WAIT_S
    while True:
        job = await service.write(partial(continue_erasure, jid=person.jid)) or begun
        if not job.is_open or time.monotonic() > until_s or not _is_served(store):
            counts = former.counts if former is not None else {}
            had_data = job.counts != counts or (former is not None and former.is_open)
            return had_data, job, await service.read(partial(_items_left, job=job))
        await asyncio.sleep(_PAUSE_S)


def _items_left(tx: "ReadTx", _context: "Context", job: "Erasure") -> "list[LeftItem]":
    from smartfeeds.features.privacy.erasing import items_left

    return items_left(tx, job)


def _scrub(store: "StoreSettings") -> str:
    """Removes the bytes of deleted rows. Returns what the operator should know of them."""
    from smartfeeds.features.privacy.scrub import scrub

    if not store.is_shared:
        return _SCRUBBED[scrub(store.path, served=_is_served(store))]
    from smartfeeds.features.privacy.postgres_scrub import scrub_postgres  # psycopg is an optional dependency

    return _SCRUBBED_ON_POSTGRES[scrub_postgres(store.address)]


def _is_served(store: "StoreSettings") -> bool:
    """Whether a service may send the deletions. The processes on PostgreSQL are not known here."""
    from smartfeeds.store.lock import database_holder

    return store.is_shared or bool(database_holder(store.path))


@gdpr_command.command("status")
@click.argument("jid", type=bare_jid)
@config_option
@json_option
def status(jid: str, config: Path | None, *, as_json: bool) -> None:
    """Show the erasure of the bare JID: its phase, its counts, and the followers that have confirmed it."""
    from smartfeeds.features.privacy.erasing import erasure_status

    erasure = read_offline(config, partial(erasure_status, person=Person(jid)))
    if erasure is None:
        raise FeedError(
            Condition.ITEM_NOT_FOUND, f"{jid} was never erased here; begin with smartfeeds gdpr erase {jid}"
        )
    values = _status_values(erasure)
    if as_json:
        print_json(values)
        return
    print_out(f"phase: {values['phase']}")
    for name, count in values["counts"].items():
        print_out(f"{name}: {count}")
    _print_left(erasure.job, erasure.left)
    for row in values["nodes"]:
        print_out(f"node {row['node']}: erased up to key {row['key']}")
    for row in values["followers"]:
        print_out(f"{row['node']} to {row['follower']}: {row['state']}")
    print_out(_OUTSIDE)


def _status_values(erasure: "ErasureStatus") -> dict[str, Any]:
    states = {True: "confirmed", False: "waiting", None: "reads only, cannot be told"}
    return {
        "phase": erasure.job.phase.value,
        "counts": dict(sorted(erasure.job.counts.items())),
        **_left_values(erasure.job, erasure.left),
        "nodes": [{"node": erasure.node_names.get(no, ""), "key": key} for no, key in sorted(erasure.job.keys.items())],
        "followers": [
            {"node": confirmation.node, "follower": confirmation.consumer, "state": states[confirmation.confirmed]}
            for confirmation in erasure.confirmations
        ],
    }
