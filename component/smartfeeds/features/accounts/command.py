"""`smartfeeds token`: adds, lists and removes bearer tokens for HTTP. A running service applies each change at once."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from smartfeeds.cli.common import bare_jid, config_option, json_option, node_argument
from smartfeeds.cli.list_commands import list_options, print_list
from smartfeeds.cli.offline import read_offline, write_offline
from smartfeeds.console import Commands, print_err, print_json, print_result
from smartfeeds.core.model import MAX_ID_BYTES
from smartfeeds.core.times import parse_duration
from smartfeeds.core.token import MAX_LABEL_BYTES, SCOPES

if TYPE_CHECKING:
    from smartfeeds.features.accounts.listing import ListedToken
    from smartfeeds.service.context import Context
    from smartfeeds.store.base import ReadTx


def duration(text: str) -> int:
    """Return the seconds of a text such as 90d, as the type of an option. Raises BadParameter."""
    seconds = parse_duration(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} is not a duration; give a number and one of s, m, h, d, w, such as 90d")
    return seconds


@click.group("token", cls=Commands)
def token_command() -> None:
    """Add, list and remove bearer tokens for HTTP."""


@token_command.command("add")
@node_argument(name="feed", former="--feed")
@click.option("--jid", type=bare_jid, metavar="JID", required=True, help="The bare JID whose rights the token has.")
@click.option("--scope", type=click.Choice(list(SCOPES)), required=True, help="The operations that the token allows.")
@click.option("--expires", type=duration, help="The time until it expires, such as 12h, 90d or 52w. Default: never.")
@click.option("--label", default="", help="A name for your own use.")
@config_option
@json_option
def add(
    jid: str, feed: str, scope: str, expires: int | None, label: str, config: Path | None, *, as_json: bool
) -> None:
    """Add a token for NODE and print it. It is shown only once. With '*' in place of NODE it is for all nodes.

    Scope read allows reading, publish also publishing and retracting, admin everything that the JID may do.
    """
    from smartfeeds.features.accounts.tokens import add_token, new_token
    from smartfeeds.store.base import OpenMode

    _check_text(feed, "NODE", MAX_ID_BYTES)
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
@list_options
def list_tokens(config: Path | None, *, as_json: bool, wide: bool) -> None:
    """List all tokens without their secrets, oldest first."""
    from smartfeeds.features.accounts.resources import TOKENS

    print_list(TOKENS, read_offline(config, _tokens), as_json=as_json, wide=wide)


@token_command.command("remove")
@click.argument("token_id", metavar="ID")
@config_option
@json_option
def remove(token_id: str, config: Path | None, *, as_json: bool) -> None:
    """Revoke the token ID at once and for ever. The ID is in the list, and in the token after sf_."""
    from smartfeeds.features.accounts.tokens import revoke_token

    token = write_offline(config, lambda tx, context: revoke_token(tx, context, token_id))
    text = f"Revoked the token {token_id}, which acted as {token.jid}."
    print_result(text, {"id": token_id, "jid": token.jid}, as_json=as_json)


def _check_text(text: str, option: str, most_bytes: int) -> None:
    if not text.isprintable() or not 0 < len(text.encode()) <= most_bytes:
        raise click.BadParameter(f"must be printable text of 1 to {most_bytes} bytes", param_hint=option)


def _tokens(tx: "ReadTx", context: "Context") -> "list[ListedToken]":
    from smartfeeds.features.accounts.listing import listed
    from smartfeeds.features.accounts.tokens import tokens_by_age

    return listed(tuple(tokens_by_age(tx)), context.now_us)
