"""Personal data: export, erasure, and blocked addresses."""

from typing import TYPE_CHECKING, Any

from smartfeeds.app.feature import Feature

if TYPE_CHECKING:
    from smartfeeds.service.resources import Resource
    from smartfeeds.service.use_cases import UseCases


def _use_cases() -> "UseCases":
    from smartfeeds.features.privacy.erasure_list import USE_CASES

    return USE_CASES


def _resources() -> "tuple[Resource[Any], ...]":
    from smartfeeds.features.privacy.erasure_list import ERASURES

    return (ERASURES,)


PRIVACY = Feature("privacy", use_cases=_use_cases, resources=_resources)
