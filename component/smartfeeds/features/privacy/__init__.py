"""Personal data: export, erasure, and blocked addresses."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature, Host, Running

if TYPE_CHECKING:
    from smartfeeds.service.hooks import Hooks
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases
    from smartfeeds.xmpp.side import XmppSide


def _use_cases() -> "UseCases":
    from smartfeeds.features.privacy.erasure_list import USE_CASES

    return USE_CASES


def _xmpp() -> "XmppSide":
    from smartfeeds.features.privacy.adhoc import XMPP

    return XMPP


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.privacy.erasure_list import ERASURES

    return (ERASURES,)


def _run(host: Host) -> Running:
    from functools import partial

    from smartfeeds.features.privacy.erasing import SWEEP

    return Running(duties=((SWEEP.name, partial(SWEEP.run, host.service)),))


def _hooks() -> "Hooks":
    from smartfeeds.features.privacy.personal import HOOKS

    return HOOKS


PRIVACY = Feature(
    "privacy",
    commands={"gdpr": "smartfeeds.features.privacy.command", "blocklist": "smartfeeds.features.privacy.block_command"},
    use_cases=_use_cases,
    xmpp=_xmpp,
    resources=_resources,
    run=_run,
    hooks=_hooks,
)
