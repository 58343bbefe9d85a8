"""Personal data: export, erasure, and blocked addresses."""

from smartfeeds.app.feature import Feature, Host, Running, ServiceSide, StoreSide


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


PRIVACY = Feature(
    "privacy",
    commands={"gdpr": "smartfeeds.features.privacy.command", "blocklist": "smartfeeds.features.privacy.block_command"},
    store=_store,
    service=_service,
    run=_run,
)
