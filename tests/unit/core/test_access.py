"""Affiliation x action, access models, publish models."""

from dataclasses import replace

import pytest

from smartfeeds.core.access import (
    RIGHTS,
    Access,
)
from smartfeeds.core.model import Affiliation, SubscriptionState
from smartfeeds.core.options import AccessModel, NodeKind, NodeOptions, PublishModel
from smartfeeds.errors import Condition, FeedError

A, M, P, S = Affiliation, AccessModel, PublishModel, SubscriptionState
STATES = (S.NONE, S.PENDING, S.SUBSCRIBED)


def access(
    affiliation: Affiliation, model: AccessModel = M.OPEN, state: S = S.NONE, *, publish: PublishModel = P.PUBLISHERS
) -> Access:
    options = NodeOptions(NodeKind.FEED, {"access_model": (model.value,), "publish_model": (publish.value,)})
    return Access(affiliation, options, state)


def test_rights_cover_every_affiliation() -> None:
    """[xep-map 85]"""
    assert set(RIGHTS) == set(Affiliation)


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
    assert RIGHTS[affiliation].read is read
    assert RIGHTS[affiliation].publish is publish
    assert access(affiliation).may_retract(own=True) is own
    assert access(affiliation).may_retract(own=False) is foreign
    assert access(affiliation).rights.manage is manage


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("affiliation", [A.OWNER, A.PUBLISHER, A.MEMBER])
def test_reading_by_the_affiliated_is_never_refused(
    affiliation: Affiliation, model: AccessModel, state: SubscriptionState
) -> None:
    """[xep-map 184]"""
    assert access(affiliation, model, state).reading_error is None


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", [A.OUTCAST, A.PUBLISH_ONLY])
def test_reading_by_outcasts_and_publish_only_is_forbidden(affiliation: Affiliation, model: AccessModel) -> None:
    """[xep-map 185]"""
    refused = access(affiliation, model, S.SUBSCRIBED).reading_error

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
        (M.PRESENCE, S.NONE, Condition.PRESENCE_REQUIRED),
        (M.PRESENCE, S.SUBSCRIBED, Condition.PRESENCE_REQUIRED),
    ],
)
def test_reading_by_an_outsider_follows_the_access_model(
    model: AccessModel, state: SubscriptionState, condition: Condition | None
) -> None:
    """[xep-map 108] [xep-map 181] [xep-map 184] [xep-map 185]"""
    refused = access(A.NONE, model, state).reading_error

    assert (refused.condition if refused else None) is condition


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", A)
def test_subscription_on_request_follows_affiliation_and_model(affiliation: Affiliation, model: AccessModel) -> None:
    """[xep-map 102] [xep-map 103] [xep-map 104] [xep-map 109]"""
    refused = {A.OUTCAST: Condition.FORBIDDEN, A.PUBLISH_ONLY: Condition.FORBIDDEN}
    if affiliation is A.NONE and model is M.WHITELIST:
        refused[A.NONE] = Condition.CLOSED_NODE
    if affiliation is A.NONE and model is M.PRESENCE:
        refused[A.NONE] = Condition.PRESENCE_REQUIRED
    if affiliation in refused:
        with pytest.raises(FeedError) as caught:
            access(affiliation, model).subscription_on_request()
        assert caught.value.condition is refused[affiliation]
    else:
        pending = affiliation is A.NONE and model is M.AUTHORIZE
        assert access(affiliation, model).subscription_on_request() is (S.PENDING if pending else S.SUBSCRIBED)


@pytest.mark.parametrize("affiliation", A)
def test_contact_reads_a_presence_node_unless_its_affiliation_forbids_it(affiliation: Affiliation) -> None:
    """[xep-map 184]"""
    refused = replace(access(affiliation, M.PRESENCE), is_contact=True).reading_error

    assert (refused is not None) is (affiliation in {A.OUTCAST, A.PUBLISH_ONLY})
    assert replace(access(A.NONE, M.WHITELIST), is_contact=True).reading_error is not None


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

    state = S.SUBSCRIBED if subscribed else S.NONE
    assert access(affiliation, state=state, publish=model).may_publish is allowed


@pytest.mark.parametrize("affiliation", A)
def test_may_overwrite_only_ones_own_items_or_as_an_appointed_publisher(affiliation: Affiliation) -> None:
    """[xep-map 155] [xep-map 234]"""
    assert access(affiliation).may_overwrite(own=True)
    assert access(affiliation).may_overwrite(own=False) is (affiliation in {A.OWNER, A.PUBLISHER, A.PUBLISH_ONLY})


@pytest.mark.parametrize("publish", P)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", A)
def test_node_is_unknown_only_to_strangers_and_outcasts_of_a_closed_one(
    affiliation: Affiliation, model: AccessModel, state: S, publish: PublishModel
) -> None:
    """[xep-map 38]"""
    closed = model is M.WHITELIST
    stranger = affiliation is A.NONE and state is S.NONE and publish is not P.OPEN

    hidden = access(affiliation, model, state, publish=publish)
    answered = replace(hidden, hides_closed=False)

    assert hidden.knows_node is not (closed and (stranger or affiliation is A.OUTCAST))
    assert answered.knows_node
    assert (answered.may_read, answered.may_publish) == (hidden.may_read, hidden.may_publish)
    assert answered.sees_description is hidden.sees_description


@pytest.mark.parametrize(
    ("contacts", "words"),
    [((), "ask its owner to make you a member"), (("carol@example.org", "dave@example.org"), "ask carol@example.org")],
)
def test_error_for_a_closed_node_says_whom_to_ask(contacts: tuple[str, ...], words: str) -> None:
    """[xep-map 103] A user who has followed a link learns how to become a member."""
    stored = {"access_model": ("whitelist",)} | ({"contact": contacts} if contacts else {})
    refused = Access(A.NONE, NodeOptions(NodeKind.FEED, stored)).reading_error

    assert refused is not None and refused.condition is Condition.CLOSED_NODE
    assert words in refused.text


@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", A)
def test_description_is_shown_to_readers_and_to_strangers_of_a_listed_node(
    affiliation: Affiliation, model: AccessModel
) -> None:
    """[xep-map 34] [xep-map 38]"""
    described = affiliation in {A.OWNER, A.PUBLISHER, A.MEMBER} or (affiliation is A.NONE and model is not M.WHITELIST)

    assert access(affiliation, model).sees_description is described


@pytest.mark.parametrize("publish", P)
@pytest.mark.parametrize("model", M)
@pytest.mark.parametrize("affiliation", A)
def test_subscription_changes_no_answer_where_access_does_not_depend_on_it(
    affiliation: Affiliation, model: AccessModel, publish: PublishModel
) -> None:
    answers = set()
    for state in STATES:
        one = access(affiliation, model, state, publish=publish)
        error = one.reading_error
        answers.add((error and error.condition, one.may_publish, one.knows_node, one.sees_description))

    assert one.depends_on_subscription or len(answers) == 1
    assert not one.depends_on_subscription or affiliation in {A.NONE, A.MEMBER}
