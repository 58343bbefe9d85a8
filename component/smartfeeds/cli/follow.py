"""`smartfeeds follow`: prints the changes of a feed as they come, and proves that none is missing."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from smartfeeds.cli.common import Exit, err, run_async
from smartfeeds.client.address import AddressError, parse_address
from smartfeeds.client.change import Change
from smartfeeds.client.follow import Follower, Proof, follow
from smartfeeds.core.jid import parse_jid


@click.command("follow")
@click.argument("address")
@click.option("--jid", envvar="SMARTFEEDS_JID", required=True, help="The account to follow with. [env: SMARTFEEDS_JID]")
@click.option(
    "--password", envvar="SMARTFEEDS_PASSWORD", help="Its password; asked for where missing. [env: SMARTFEEDS_PASSWORD]"
)
@click.option(
    "--password-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with the password."
)
@click.option("--server", metavar="HOST:PORT", help="The server, where the DNS does not tell.")
@click.option("--plaintext", is_flag=True, help="Allow a connection without TLS: for a server on this machine only.")
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps the position; the next start goes on from it.",
)
@click.option("--mirror", is_flag=True, help="Begin with the oldest item, not with what comes from now on.")
@click.option("--until-caught-up", is_flag=True, help="End when everything there is has been printed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a change.")
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

    What was missed, while away or because a notification was lost, is found by its cursors and pulled. Ends with
    Ctrl-C, and says then what it can prove.
    """
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
    # slixmpp takes the running event loop when a client is made, so that is done in it.
    make = partial(
        follow,
        str(feed),
        jid=str(account),
        password=password,
        server=_server(server),
        plaintext=plaintext,
        store=store,
        mirror=mirror,
    )
    proof = run_async(_follow(make, as_json=as_json, until_caught_up=until_caught_up))
    err.print(str(proof), markup=False)
    if until_caught_up and not proof.in_step:
        click.get_current_context().exit(Exit.FAILED)


async def _follow(make: Callable[..., Follower], *, as_json: bool, until_caught_up: bool) -> Proof:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def on_caught_up(proof: Proof) -> None:
        """Comes before the last changes are handed over: what it says has to wait for them."""
        if until_caught_up:
            done.set()
        elif not as_json:
            loop.call_soon(lambda: err.print(f"-- {proof}", markup=False))

    follower = make(on_caught_up=on_caught_up)
    printing = asyncio.ensure_future(_print_all(follower, as_json=as_json))
    ending = asyncio.ensure_future(done.wait())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, printing.cancel)
    try:
        # Everything that was pulled is printed before the follower waits again, so before `ending` is done.
        await asyncio.wait((printing, ending), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        printing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await printing
        return follower.proof()
    finally:
        await follower.aclose()


async def _print_all(follower: Follower, *, as_json: bool) -> None:
    async for change in follower:
        click.echo(_as_json(change) if as_json else _as_text(change))
        sys.stdout.flush()


def _as_json(change: Change) -> str:
    return json.dumps(
        {
            "kind": change.kind.value,
            "id": change.item_id,
            "node": change.node,
            "title": change.title,
            "link": change.link,
            "author": change.author,
            "updated": change.atom.updated,
            "publisher": change.publisher,
            "total": change.total,
            "position": change.position,
            "payload": change.payload.decode(),
        },
        ensure_ascii=False,
    )


def _as_text(change: Change) -> str:
    parts = [change.title or change.item_id, change.author, change.link]
    return f"{change.kind.value:8} " + "  ".join(part for part in parts if part)


def _server(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--server")
    return host, int(port)
