"""Personal data: export, erasure, and blocked addresses."""

from typing import TYPE_CHECKING

from smartfeeds.app.commands import CommandRow, CommandTopic
from smartfeeds.app.feature import Feature, Host, Running, ServiceSide, StoreSide

if TYPE_CHECKING:
    import click


def _store() -> StoreSide:
    from smartfeeds.features.privacy.erasure_list import USE_CASES
    from smartfeeds.features.privacy.personal import HOOKS

    return StoreSide(use_cases=USE_CASES, hooks=HOOKS)


def _service() -> ServiceSide:
    from smartfeeds.features.privacy.adhoc import XMPP
    from smartfeeds.features.privacy.erasure_list import ERASURES

    return ServiceSide(xmpp=XMPP, resources=(ERASURES,))


def _run(host: Host) -> Running:
    from functools import partial

    from smartfeeds.features.privacy.erasing import SWEEP

    return Running(duties=((SWEEP.name, partial(SWEEP.run, host.service)),))


def _blocklist() -> "click.Command":
    from smartfeeds.features.privacy.block_command import blocklist_command

    return blocklist_command


def _gdpr() -> "click.Command":
    from smartfeeds.features.privacy.command import gdpr_command

    return gdpr_command


PRIVACY = Feature(
    "privacy",
    commands=(
        CommandRow(
            "blocklist",
            CommandTopic.PEOPLE,
            "Change the lists of addresses that may not use the service, or that only may use it.",
            _blocklist,
            {
                "add": "Deny the bare JID or domain NAME every request.",
                "list": "List both lists.",
                "remove": "Remove the bare JID or domain NAME from the list, also after the person was erased.",
            },
        ),
        CommandRow(
            "gdpr",
            CommandTopic.PEOPLE,
            "Export or erase the data of a person.",
            _gdpr,
            {
                "erase": "Erase the bare JID: its items become tombstones, its rows are removed, histories lose its "
                "name.",
                "export": "Write everything that the store has of the bare JID to a zip file.",
                "status": "Show the erasure of the bare JID: its phase, its counts, and the followers that have "
                "confirmed it.",
            },
        ),
    ),
    store=_store,
    service=_service,
    run=_run,
)
