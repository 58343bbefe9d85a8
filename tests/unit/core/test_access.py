"""Affiliation x action, access models, publish models."""

import pytest

from smartfeeds.core.access import (
    CAPABILITIES,
    AccessModel,
    Action,
    PublishModel,
    may_manage,
    may_overwrite,
    may_publish,
    may_retract,
    reading_refused,
    subscription_on_request,
)
from smartfeeds.core.model import Affiliation, SubscriptionState
from smartfeeds.errors import Condition, FeedError

A, M, P, S = Affiliation, AccessModel, PublishModel, SubscriptionState
STATES = (S.NONE, S.PENDING, S.SUBSCRIBED)


def test_capabilities_cover_every_affiliation_and_action() -> None:
    """[xep-map 85]"""
    assert {a: set(row) for a, row in CAPABILITIES.items()} == {a: set(Action) for a in Affiliation}


# XEP-0060 4.1, table 1: retrieve; publish by right; delete own; delete any; manage. None: the model decides.
@pytest.mark.parametrize(
    ("affiliation", "read", "publish", "own", "foreign", "manage"),
    [
        (A.OWNER, True, True, True, True, True),
        (A.PUBLISHER, True, True, True, False, False),
        (A.PUBLISH_ONLY, False, True, True, False, False),
        (A.MEMBER, True, None, True, False, False),
        (A.NONE, None, None, True, False, False),
        (A.OUTCAST, False, False, False, False, False),
    ],
    ids=lambda value: value.value if isinstance(value, Affiliation) else "",
)
def test_privileges_of_an_affiliation_are_those_of_the_table(
    affiliation: Affiliation, read: bool | None, publish: bool | None, own: bool, foreign: bool, manage: bool
) -> None:
    """[xep-map 85] [xep-map 154] [xep-map 155]"""
    assert CAPABILITIES[affiliation][Action.READ] is read
    assert CAPABILITIES[affiliation][Action.PUBLISH] is publish
    assert may_retract(affiliation, own=True) is own
    assert may_retract(affiliation, own=False) is foreign
    assert may_manage(affiliation) is manage


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("affiliation", [A.OWNER, A.PUBLISHER, A.MEMBER])
def test_reading_by_the_affiliated_is_never_refused(
    affiliation: Affiliation, model: AccessModel, state: SubscriptionState
) -> None:
    """[xep-map 184]"""
    assert reading_refused(affiliation, model, state) is None


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", [A.OUTCAST, A.PUBLISH_ONLY])
def test_reading_by_outcasts_and_publish_only_is_forbidden(affiliation: Affiliation, model: AccessModel) -> None:
    """[xep-map 185]"""
    refused = reading_refused(affiliation, model, S.SUBSCRIBED)

    assert refused is not None and refused.condition is Condition.FORBIDDEN


@pytest.mark.parametrize(
    ("model", "state", "condition"),
    [
        (M.OPEN, S.NONE, None),
        (M.OPEN, S.PENDING, None),
        (M.OPEN, S.SUBSCRIBED, None),
        (M.AUTHORIZE, S.NONE, Condition.NOT_SUBSCRIBED_READER),
        (M.AUTHORIZE, S.PENDING, Condition.NOT_SUBSCRIBED_READER),
        (M.AUTHORIZE, S.SUBSCRIBED, None),
        (M.WHITELIST, S.NONE, Condition.CLOSED_NODE),
        (M.WHITELIST, S.PENDING, Condition.CLOSED_NODE),
        (M.WHITELIST, S.SUBSCRIBED, Condition.CLOSED_NODE),
    ],
)
def test_reading_by_an_outsider_follows_the_access_model(
    model: AccessModel, state: SubscriptionState, condition: Condition | None
) -> None:
    """[xep-map 108] [xep-map 181] [xep-map 184] [xep-map 185]"""
    refused = reading_refused(A.NONE, model, state)

    assert (refused.condition if refused else None) is condition


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", A)
def test_subscription_on_request_follows_affiliation_and_model(affiliation: Affiliation, model: AccessModel) -> None:
    """[xep-map 102] [xep-map 103] [xep-map 104] [xep-map 109]"""
    refused = {A.OUTCAST: Condition.FORBIDDEN, A.PUBLISH_ONLY: Condition.FORBIDDEN}
    if affiliation is A.NONE and model is M.WHITELIST:
        refused[A.NONE] = Condition.CLOSED_NODE
    if affiliation in refused:
        with pytest.raises(FeedError) as caught:
            subscription_on_request(affiliation, model)
        assert caught.value.condition is refused[affiliation]
    else:
        pending = affiliation is A.NONE and model is M.AUTHORIZE
        assert subscription_on_request(affiliation, model) is (S.PENDING if pending else S.SUBSCRIBED)


@pytest.mark.parametrize("subscribed", [True, False])
@pytest.mark.parametrize("model", P)
@pytest.mark.parametrize("affiliation", A)
def test_may_publish_lets_in_exactly_whom_the_model_names(
    affiliation: Affiliation, model: PublishModel, subscribed: bool
) -> None:
    """[xep-map 132]"""
    by_right = affiliation in {A.OWNER, A.PUBLISHER, A.PUBLISH_ONLY}
    by_model = model is P.OPEN or (model is P.SUBSCRIBERS and subscribed)

    allowed = by_right or (by_model and affiliation is not A.OUTCAST)

    assert may_publish(affiliation, model, subscribed=subscribed) is allowed


@pytest.mark.parametrize("affiliation", A)
def test_may_overwrite_only_ones_own_items_or_as_an_appointed_publisher(affiliation: Affiliation) -> None:
    """[xep-map 155] [xep-map 234]"""
    assert may_overwrite(affiliation, own=True)
    assert may_overwrite(affiliation, own=False) is (affiliation in {A.OWNER, A.PUBLISHER, A.PUBLISH_ONLY})
