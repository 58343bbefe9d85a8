"""Accounts: bearer tokens, sessions and the sign-in by XMPP."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, ServiceSide, StoreSide

if TYPE_CHECKING:
    import click

    from smartfeeds.features.accounts.pages import SignInPages
    from smartfeeds.http.side import HttpSide
    from smartfeeds.store.row_readers import RowReader


def _store() -> StoreSide:
    from smartfeeds.features.accounts import listing, sessions
    from smartfeeds.features.accounts.personal import HOOKS

    return StoreSide(use_cases=listing.USE_CASES | sessions.USE_CASES, hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.accounts.adhoc import XMPP
    from smartfeeds.features.accounts.chat import CHAT
    from smartfeeds.features.accounts.resources import TOKENS

    return ServiceSide(xmpp=XMPP, chat=CHAT, resources=(TOKENS,))


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.accounts.rows import SESSION, to_session
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.store.sql_records import to_token
    from smartfeeds.store.sql_tables import TOKEN

    return (
        RowReader(TOKEN, "token_id", TOKEN.columns, to_token),
        RowReader(SESSION, "session_id", SESSION.columns, to_session),
    )


def _http() -> "HttpSide[SignInPages]":
    from smartfeeds.features.accounts.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.accounts.setup import run_accounts

    return run_accounts(host)


def _token() -> "click.Command":
    from smartfeeds.features.accounts.command import token_command

    return token_command


ACCOUNTS = Feature(
    "accounts",
    needs=("pages",),
    commands=(
        CommandRow(
            "token",
            CommandTopic.PEOPLE,
            "Add, list and remove bearer tokens for HTTP.",
            _token,
            {
                "add": "Add a token for NODE and print it.",
                "list": "List all tokens without their secrets, oldest first.",
                "remove": "Revoke the token ID at once and for ever.",
            },
            {"revoke": "remove"},
        ),
    ),
    store=_store,
    service=_service,
    http=_http,
    run=_run,
    row_readers=_row_readers,
)
