"""The administrative rights of a user: over the service, its own nodes, or nothing. Each request of administration
checks it."""

from dataclasses import dataclass
from enum import Enum

from smartfeeds.core.access import RIGHTS
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Affiliation, KeyRange, Node
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.context import Context, Policy, affiliation_of, is_admin
from smartfeeds.service.nodes import may_create
from smartfeeds.service.requests import Answer, Request
from smartfeeds.store.base import ReadTx


@dataclass(frozen=True, slots=True)
class GetStanding(Request):
    """Asks what the actor may administer."""


@dataclass(frozen=True, slots=True)
class Standing(Answer):
    """The administrative rights of a user: over the service, nodes that it owns, new nodes. `publisher`: it owns a node
    or was appointed to publish in one. `restarts`: a process manager starts the service again after a restart
    command."""

    admin: bool
    owner: bool
    publisher: bool
    creator: bool
    restarts: bool


class Audience(Enum):
    """The users who see a command and may run it. The service checks the rights on nodes for each request."""

    EVERYBODY = "everybody"
    CREATORS = "users who may create nodes"
    OWNERS = "owners of a node"
    PUBLISHERS = "owners and publishers of a node"
    ADMINS = "admins of the service"
    RESTARTERS = "admins of a service that a process manager restarts"

    def admits(self, standing: Standing) -> bool:
        """Returns whether a user with this standing belongs to the audience."""
        return {
            Audience.EVERYBODY: True,
            Audience.CREATORS: standing.creator,
            Audience.OWNERS: standing.admin or standing.owner,
            Audience.PUBLISHERS: standing.admin or standing.publisher,
            Audience.ADMINS: standing.admin,
            Audience.RESTARTERS: standing.admin and standing.restarts,
        }[self]


def get_standing(tx: ReadTx, context: Context, request: GetStanding) -> Standing:
    """Returns the administrative rights of the actor."""
    bare = request.actor.bare_text
    owner = bool(tx.affiliations_of(bare, KeyRange(1), kind=Affiliation.OWNER))
    publisher = owner or bool(tx.affiliations_of(bare, KeyRange(1), kind=Affiliation.PUBLISHER))
    creator = may_create(context, request.actor)
    return Standing(is_admin(context.policy, request.actor), owner, publisher, creator, context.policy.restarts)


def check_admin(policy: Policy, actor: Jid) -> None:
    """Raises FeedError(FORBIDDEN) unless the actor is an admin of the service."""
    if not is_admin(policy, actor):
        raise FeedError(Condition.FORBIDDEN, "only admins of the service (pubsub.admins) may do this")


def manages(tx: ReadTx, context: Context, actor: Jid, node: Node | None) -> bool:
    """Whether the actor may configure the node. An admin also manages nodes that do not exist yet."""
    if node is None:
        return is_admin(context.policy, actor)
    return RIGHTS[affiliation_of(tx, context, node, actor)].manage
