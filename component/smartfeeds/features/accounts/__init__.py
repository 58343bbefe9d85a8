"""Accounts: bearer tokens, sessions and the sign-in by XMPP."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.chat.commands import ChatTable
    from smartfeeds.features.accounts.pages import SignInPages
    from smartfeeds.http.side import HttpSide
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.xmpp.side import XmppSide


def _row_readers() -> "tuple[RowReader, ...]":
    from smartfeeds.features.accounts.rows import SESSION, to_session
    from smartfeeds.store.row_readers import RowReader
    from smartfeeds.store.sql_records import to_token
    from smartfeeds.store.sql_tables import TOKEN

    return (
        RowReader(TOKEN, "token_id", TOKEN.columns, to_token),
        RowReader(SESSION, "session_id", SESSION.columns, to_session),
    )


def _use_cases() -> "UseCases":
    from smartfeeds.features.accounts import listing, sessions

    return listing.USE_CASES | sessions.USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.accounts.adhoc import XMPP

    return XMPP


def _http() -> "HttpSide[SignInPages]":
    from smartfeeds.features.accounts.routes import HTTP

    return HTTP


def _run(host: Host) -> Running:
    from smartfeeds.features.accounts.setup import run_accounts

    return run_accounts(host)


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.accounts.resources import TOKENS

    return (TOKENS,)


def _chat() -> "ChatTable":
    from smartfeeds.features.accounts.chat import CHAT

    return CHAT


def _hooks() -> "Hooks":
    from smartfeeds.features.accounts.personal import HOOKS

    return HOOKS


ACCOUNTS = Feature(
    "accounts",
    needs=("pages",),
    commands={"token": "smartfeeds.features.accounts.command"},
    row_readers=_row_readers,
    use_cases=_use_cases,
    xmpp=_xmpp,
    http=_http,
    run=_run,
    resources=_resources,
    chat=_chat,
    hooks=_hooks,
)
