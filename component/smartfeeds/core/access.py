"""Who may do what: affiliation x action, the access models and the publish models (XEP-0060 4.1, 4.5; xep-map 85)."""

from enum import Enum

from smartfeeds.core.model import Affiliation, Node, SubscriptionState
from smartfeeds.core.options import AccessModel, PublishModel
from smartfeeds.errors import Condition, FeedError


class Action(Enum):
    """What an affiliation decides about, apart from the models."""

    READ = "read"
    PUBLISH = "publish"
    RETRACT_ANY = "retract any item"
    RETRACT_OWN = "retract own items"
    MANAGE = "configure, delete, purge, manage"


# True: always. None: the model of the node decides. False: never.
CAPABILITIES: dict[Affiliation, dict[Action, bool | None]] = {
    Affiliation.OWNER: dict.fromkeys(Action, True),
    Affiliation.PUBLISHER: {
        Action.READ: True,
        Action.PUBLISH: True,
        Action.RETRACT_ANY: False,
        Action.RETRACT_OWN: True,
        Action.MANAGE: False,
    },
    Affiliation.PUBLISH_ONLY: {
        Action.READ: False,
        Action.PUBLISH: True,
        Action.RETRACT_ANY: False,
        Action.RETRACT_OWN: True,
        Action.MANAGE: False,
    },
    Affiliation.MEMBER: {
        Action.READ: True,
        Action.PUBLISH: None,
        Action.RETRACT_ANY: False,
        Action.RETRACT_OWN: True,
        Action.MANAGE: False,
    },
    Affiliation.NONE: {
        Action.READ: None,
        Action.PUBLISH: None,
        Action.RETRACT_ANY: False,
        Action.RETRACT_OWN: True,
        Action.MANAGE: False,
    },
    Affiliation.OUTCAST: dict.fromkeys(Action, False),
}

# Whom their affiliation lets read whatever the model, and whom it keeps out.
READERS = frozenset(held for held, may in CAPABILITIES.items() if may[Action.READ] is True)
KEPT_OUT = frozenset(held for held, may in CAPABILITIES.items() if may[Action.READ] is False)

# What an entity without an affiliation hears where it may not read, by model and by its subscription.
_CLOSED = {
    (AccessModel.AUTHORIZE, SubscriptionState.NONE): Condition.NOT_SUBSCRIBED_READER,
    (AccessModel.AUTHORIZE, SubscriptionState.PENDING): Condition.NOT_SUBSCRIBED_READER,
    (AccessModel.WHITELIST, SubscriptionState.NONE): Condition.CLOSED_NODE,
    (AccessModel.WHITELIST, SubscriptionState.PENDING): Condition.CLOSED_NODE,
    (AccessModel.WHITELIST, SubscriptionState.SUBSCRIBED): Condition.CLOSED_NODE,
}


def reading_refused(affiliation: Affiliation, model: AccessModel, state: SubscriptionState) -> FeedError | None:
    """Why this entity may not retrieve items or get events, or None when it may (xep-map 184, 185, 181)."""
    verdict = CAPABILITIES[affiliation][Action.READ]
    refused = _CLOSED.get((model, state)) if verdict is None else None
    if verdict is False:
        refused = Condition.FORBIDDEN
    return FeedError(refused) if refused else None


def subscription_on_request(affiliation: Affiliation, model: AccessModel) -> SubscriptionState:
    """The state a request to subscribe leads to. Raises FeedError where it may not (xep-map 102, 103, 104, 109)."""
    verdict = CAPABILITIES[affiliation][Action.READ]
    if verdict is False:
        raise FeedError(Condition.FORBIDDEN)
    if verdict or model is AccessModel.OPEN:
        return SubscriptionState.SUBSCRIBED
    if model is AccessModel.WHITELIST:
        raise FeedError(Condition.CLOSED_NODE)
    return SubscriptionState.PENDING


def may_publish(affiliation: Affiliation, model: PublishModel, *, subscribed: bool) -> bool:
    """Whether this entity may publish (xep-map 132)."""
    verdict = CAPABILITIES[affiliation][Action.PUBLISH]
    if verdict is not None:
        return verdict
    return model is PublishModel.OPEN or (model is PublishModel.SUBSCRIBERS and subscribed)


def may_overwrite(affiliation: Affiliation, *, own: bool) -> bool:
    """Whether this entity may publish under the id of an item that is there: whom only the publish model lets in may
    not put its words in the place of somebody else's."""
    return own or CAPABILITIES[affiliation][Action.PUBLISH] is True


def may_retract(affiliation: Affiliation, *, own: bool) -> bool:
    """Whether this entity may retract an item, its own or somebody else's (xep-map 154, 155)."""
    action = Action.RETRACT_OWN if own else Action.RETRACT_ANY
    return CAPABILITIES[affiliation][action] is True or CAPABILITIES[affiliation][Action.RETRACT_ANY] is True


def may_manage(affiliation: Affiliation) -> bool:
    """Whether this entity may configure, purge, delete and manage the node (xep-map 66, 83, 97)."""
    return CAPABILITIES[affiliation][Action.MANAGE] is True


def is_known_to(affiliation: Affiliation, node: Node) -> bool:
    """Whether a user with this affiliation may know that the node exists."""
    return affiliation in READERS or (affiliation not in KEPT_OUT and node.options.listed)
