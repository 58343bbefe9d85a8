"""`smartfeeds token`: adds, lists and revokes bearer tokens for HTTP. A running service applies each change at once."""

from pathlib import Path

import click

from smartfeeds.cli.common import bare_jid, config_option, json_option
from smartfeeds.cli.list_commands import print_list
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.console import Commands, print_err, print_json, print_out
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import parse_duration
from smartfeeds.core.token import ALL_FEEDS, MAX_LABEL_BYTES, SCOPES
from smartfeeds.features.accounts.listing import ListedToken, listed
from smartfeeds.features.accounts.resources import TOKENS
from smartfeeds.features.accounts.tokens import add_token, new_token, revoke_token, tokens_by_age
from smartfeeds.service.context import Context
from smartfeeds.store.base import OpenMode, ReadTx


def duration(text: str) -> int:
    """Return the seconds of a text such as 90d, as the type of an option. Raises BadParameter."""
    seconds = parse_duration(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} is not a duration; give a number and one of s, m, h, d, w, such as 90d")
    return seconds


@click.group("token", cls=Commands)
def token_command() -> None:
    """Add, list and revoke bearer tokens for HTTP."""


@token_command.command("add")
@click.option("--jid", type=bare_jid, metavar="JID", required=True, help="The bare JID whose rights the token has.")
@click.option("--feed", required=True, help=f"The node that the token is valid for, or '{ALL_FEEDS}' for all nodes.")
@click.option("--scope", type=click.Choice(list(SCOPES)), required=True, help="The operations that the token allows.")
@click.option("--expires", type=duration, help="The time until it expires, such as 12h, 90d or 52w. Default: never.")
@click.option("--label", default="", help="A name for your own use.")
@config_option
@json_option
def add(
    jid: str, feed: str, scope: str, expires: int | None, label: str, config: Path | None, *, as_json: bool
) -> None:
    """Add a token and print it. It is shown only once.

    Scope read allows reading, publish also publishing and retracting, admin everything that the JID may do.
    """
    _check_text(feed, "--feed", MAX_ID_BYTES)
    _check_text(label or "-", "--label", MAX_LABEL_BYTES)
    token, text = new_token(jid, SCOPES[scope], feed, label)
    node_there = write_offline(config, lambda tx, context: add_token(tx, context, token, expires), OpenMode.CREATE)
    if as_json:
        print_json({"id": token.token_id, "token": text, "nodeExists": node_there})
        return
    click.echo(text)
    print_err("The token is shown only once. Send it as: Authorization: Bearer TOKEN (docs/http.md)")
    if not node_there:
        print_err(f"The node {feed} does not exist yet. The token works after it is created.")


@token_command.command("list")
@config_option
@json_option
def list_tokens(config: Path | None, *, as_json: bool) -> None:
    """List all tokens without their secrets, oldest first."""
    print_list(TOKENS, read_offline(config, _tokens), as_json=as_json)


@token_command.command("revoke")
@click.argument("token_id", metavar="ID")
@config_option
def revoke(token_id: str, config: Path | None) -> None:
    """Revoke the token ID at once and for ever. The ID is in the list, and in the token after sf_."""
    token = write_offline(config, lambda tx, context: revoke_token(tx, context, token_id))
    print_out(f"Revoked the token {token_id}, which acted as {token.jid}.")


def _check_text(text: str, option: str, most_bytes: int) -> None:
    if not text.isprintable() or not 0 < len(text.encode()) <= most_bytes:
        raise click.BadParameter(f"must be printable text of 1 to {most_bytes} bytes", param_hint=option)


def _tokens(tx: ReadTx, context: Context) -> list[ListedToken]:
    return listed(tuple(tokens_by_age(tx)), context.now_us)
