"""Data of persons in tokens and sessions (`service.personal`)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from smartfeeds.core.token import Token
from smartfeeds.features.accounts import rows
from smartfeeds.features.accounts.session import Session
from smartfeeds.service.context import Hooks, Personal
from smartfeeds.service.personal import MENTION, ROW, TEXT, PersonalTable
from smartfeeds.store.base import ReadTx

_COLUMNS: Final = {"jid": ROW, "feed": MENTION, "label": TEXT}


def _export(tx: ReadTx, jid: str) -> Mapping[str, Mapping[str, Any]]:
    tokens = [_without_secret(token) for token in rows.tokens_of(tx, jid)]
    sessions = [_without_secret(session) for session in rows.sessions_of(tx, jid)]
    return {"tokens.json": {"tokens": tokens, "sessions": sessions}}


def _without_secret(row: Token | Session) -> dict[str, Any]:
    fields = asdict(row) | {"scope": row.scope.text}
    del fields["digest"]
    return fields


HOOKS = Hooks(
    personal=(
        Personal(
            (
                PersonalTable("token", "token_id", _COLUMNS, frozenset({"token_id", "digest", "scope"})),
                PersonalTable(
                    "session", "session_id", _COLUMNS, frozenset({"session_id", "digest", "scope", "token_id"})
                ),
            ),
            export=_export,
        ),
    )
)
