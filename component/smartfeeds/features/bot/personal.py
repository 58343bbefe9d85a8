"""Data of persons in the settings of the bot (`service.personal`)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from smartfeeds.features.bot import rows
from smartfeeds.service.context import Hooks, Personal
from smartfeeds.service.personal import ROW, TEXT, PersonalTable
from smartfeeds.store.base import ReadTx


def _export(tx: ReadTx, jid: str) -> Mapping[str, Mapping[str, Any]]:
    chat = rows.chat(tx, jid)
    return {"other.json": {"chat": None if chat is None else asdict(chat)}}


HOOKS = Hooks(personal=(Personal((PersonalTable("chat", "jid", {"jid": ROW, "settings": TEXT}),), export=_export),))
