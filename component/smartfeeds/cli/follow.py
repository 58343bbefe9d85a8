"""`smartfeeds follow`: prints the changes of a feed as they arrive, and proves that none is missing."""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import FILE
from smartfeeds.console import exit_failed_if, print_err, run_async
from smartfeeds.core.feed_address import AddressError, parse_address
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.text import one_line

if TYPE_CHECKING:
    from smartfeeds.client.change import Change
    from smartfeeds.client.follow import Follower, Proof

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command("follow")
@click.argument("address")
@click.option("--jid", envvar="SMARTFEEDS_JID", required=True, help="The account to follow with. [env: SMARTFEEDS_JID]")
@click.option(
    "--password", envvar="SMARTFEEDS_PASSWORD", help="The password. Default: ask for it. [env: SMARTFEEDS_PASSWORD]"
)
@click.option(
    "--password-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with the password."
)
@click.option("--server", metavar="HOST:PORT", help="The server. Default: from the DNS.")
@click.option(
    "--plaintext", is_flag=True, help="Allow a connection without TLS. Use it for a server on this machine only."
)
@click.option(
    "--store",
    type=FILE,
    help="A file for the position. The next start continues from it.",
)
@click.option("--mirror", is_flag=True, help="Start with the oldest item. Default: with the next change.")
@click.option("--until-caught-up", is_flag=True, help="Exit after the newest item.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per change.")
def follow_command(
    address: str,
    jid: str,
    password: str | None,
    password_file: Path | None,
    server: str | None,
    store: Path | None,
    *,
    plaintext: bool,
    mirror: bool,
    until_caught_up: bool,
    as_json: bool,
) -> None:
    """Follow the feed at ADDRESS, such as 'xmpp:feeds.example.org?;node=comments', and print every change.

    The cursors of notifications show missed changes, and the command pulls them. It prints a proof that nothing is
    missing when it has caught up for the first time, and at the end. Press Ctrl-C to end it.
    """
    from smartfeeds.client.follow import follow

    click.get_current_context().with_resource(_warnings_on_stderr())
    try:
        feed = parse_address(address)
    except AddressError as error:
        raise click.BadParameter(str(error), param_hint="ADDRESS") from None
    account = parse_jid(jid)
    if account is None or not account.local:
        raise click.BadParameter(f"{jid!r} is not an account such as alice@example.org", param_hint="--jid")
    if password_file is not None:
        password = password_file.read_text("utf-8").strip()
    if password is None:
        password = click.prompt("Password", hide_input=True, err=True)
    # slixmpp uses the event loop that runs when a client is created, so `run_follow` creates the client.
    make = partial(
        follow,
        str(feed),
        jid=str(account),
        password=password,
        server=_server(server),
        plaintext=plaintext,
        store=store,
        mirror=mirror,
        on_connection=_report_connection,
    )
    proof = run_async(run_follow(make, _write, as_json=as_json, until_caught_up=until_caught_up))
    exit_failed_if(until_caught_up and not proof.in_step)


def change_line(change: "Change", *, as_json: bool = False) -> str:
    """Return a change as a line of text or of JSON."""
    if as_json:
        fields = {
            "kind": change.kind.value,
            "id": change.item_id,
            "title": change.title,
            "link": change.link,
            "author": change.author,
            "publisher": change.publisher,
            "node": change.node,
            "position": change.position,
            "total": change.total,
            "payload": change.payload.decode(),
        }
        return json.dumps(fields, ensure_ascii=False)
    about = [change.title or "-", *(f"({text})" for text in (change.author or change.publisher,) if text)]
    return one_line(f"{change.kind.value:<7}  {change.item_id}  {' '.join(about)}  {change.link}")


def proof_line(proof: "Proof", *, as_json: bool = False) -> str:
    """Return a proof as a line of text or of JSON."""
    if not as_json:
        return one_line(f"proof    {proof}")
    return json.dumps({"kind": "proof", **asdict(proof)}, ensure_ascii=False)


async def run_follow(
    make: "Callable[..., Follower]",
    write: Callable[[str], None],
    *,
    as_json: bool = False,
    until_caught_up: bool = False,
) -> "Proof":
    """Follow until a signal arrives or, with `until_caught_up`, every item was written.

    `make` returns the follower. Its argument `on_caught_up` is that of `follow`. A proof is written when the follower
    has caught up for the first time, and at the end. Returns the last proof. Raises FollowError, LinkError, StoreError.
    """
    has_proof = False
    stop = asyncio.Event()

    def on_caught_up(proof: "Proof") -> None:
        nonlocal has_proof
        if not has_proof:
            has_proof = True
            write(proof_line(proof, as_json=as_json))
        if until_caught_up:
            stop.set()

    with _interrupted_by_signals(stop.set):
        async with make(on_caught_up=on_caught_up) as feed:
            try:
                while (change := await _next_unless(stop, feed)) is not None:
                    write(change_line(change, as_json=as_json))
                    # After the line is out: a crash between the two prints a change twice, the other order none.
                    feed.acknowledge()
            finally:
                proof = feed.proof()
                write(proof_line(proof, as_json=as_json))
            return proof


async def _next_unless(stop: asyncio.Event, feed: "Follower") -> "Change | None":
    """Return the next change, or None if `stop` is set first."""
    stop_wait = asyncio.ensure_future(stop.wait())
    next_change = asyncio.ensure_future(anext(feed))
    try:
        await asyncio.wait({stop_wait, next_change}, return_when=asyncio.FIRST_COMPLETED)
        return await next_change if next_change.done() else None
    finally:
        stop_wait.cancel()
        next_change.cancel()  # which loses no change: the follower takes one only after its last wait


@contextmanager
def _interrupted_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def _write(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()


class StderrHandler(logging.Handler):
    """Prints log records on standard error in the form of the program's own messages."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a record."""
        print_err(f"smartfeeds: {record.getMessage()}")


_HANDLERS = (
    ("smartfeeds.client", StderrHandler(logging.WARNING)),
    ("slixmpp", logging.NullHandler()),  # the follower reports the relevant warnings itself
)


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Add the handlers while the command runs. Handlers of other code are kept."""
    for name, handler in _HANDLERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        # Commands also run inside tests and other programs, whose logging must not change.
        for name, handler in _HANDLERS:
            logger = logging.getLogger(name)
            logger.removeHandler(handler)
            logger.propagate = True


def _report_connection(up: bool) -> None:
    """Report the connection on standard error, because standard output has the changes."""
    what = "connected again; pulling missed changes" if up else "connection lost; reconnecting"
    print_err(f"smartfeeds: {what}")


def _server(text: str | None) -> tuple[str, int] | None:
    from smartfeeds.client.transport import parse_server

    if text is None:
        return None
    try:
        return parse_server(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--server") from None
