"""The rights of each affiliation, the access models and the publish models (XEP-0060 4.1, 4.5).

`RIGHTS` is the table from affiliations to rights. `Access` combines it with the models of a node. It has the rights of
one actor on one node, including whether the actor may know that the node exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from smartfeeds.core.model import Affiliation, SubscriptionState
from smartfeeds.core.options import AccessModel, NodeOptions, PublishModel
from smartfeeds.errors import Condition, FeedError


class Rights(NamedTuple):
    """The rights of an affiliation. True: always; False: never; None: the access model or publish model decides."""

    read: bool | None
    publish: bool | None
    retract_own: bool
    retract_any: bool = False
    manage: bool = False  # configure, delete, purge, manage affiliations and subscriptions


RIGHTS = {
    Affiliation.OWNER: Rights(read=True, publish=True, retract_own=True, retract_any=True, manage=True),
    Affiliation.PUBLISHER: Rights(read=True, publish=True, retract_own=True),
    Affiliation.PUBLISH_ONLY: Rights(read=False, publish=True, retract_own=True),
    Affiliation.MEMBER: Rights(read=True, publish=None, retract_own=True),
    Affiliation.NONE: Rights(read=None, publish=None, retract_own=True),
    Affiliation.OUTCAST: Rights(read=False, publish=False, retract_own=False),
}

# The affiliations that may read under every access model, and those that may read under none.
READERS = frozenset(affiliation for affiliation, rights in RIGHTS.items() if rights.read is True)
KEPT_OUT = frozenset(affiliation for affiliation, rights in RIGHTS.items() if rights.read is False)

# The error for an actor without an affiliation who may not read, by access model (XEP-0060 6.5.9.2 to 6.5.9.7). That of
# a whitelist is `_closed_node`.
_CLOSED = {
    AccessModel.AUTHORIZE: Condition.NOT_SUBSCRIBED_READER,
    AccessModel.PRESENCE: Condition.PRESENCE_REQUIRED,
}


def _closed_node(contacts: Sequence[str]) -> FeedError:
    """The error for users who are not on the list of a node. They may have followed a link, so it says whom to ask: the
    first contact that the owner has named (`pubsub#contact`)."""
    if not contacts:
        return FeedError(
            Condition.CLOSED_NODE,
            "this feed is closed, and only its members may read it: ask its owner to make you a member",
        )
    contact = contacts[0]
    return FeedError(
        Condition.CLOSED_NODE, f"this feed is closed, and only its members may read it: ask {contact} for membership"
    )


@dataclass(frozen=True, slots=True)
class Access:
    """The access of one actor to one node (`service.context.access_of`). `rights` are those of the affiliation.

    `may_publish`: the affiliation or the publish model lets the actor publish (xep-map 132). `may_read`: there is no
    `reading_error`.

    `subscription` is the best state among the actor's subscriptions. It is NONE where `depends_on_subscription` is
    false, because it would not change what the actor may do or know. `is_contact` says whether the actor is a contact
    of the service. It is false where `depends_on_contact` is false, because it would not change what the actor may do.
    `hides_closed`: a whitelist node does not exist for the actor, as long as nothing else lets the actor know of it
    (`pubsub.closed_nodes`).
    """

    affiliation: Affiliation
    options: NodeOptions
    subscription: SubscriptionState = SubscriptionState.NONE
    is_contact: bool = False
    hides_closed: bool = True
    rights: Rights = field(init=False, repr=False, compare=False)
    may_publish: bool = field(init=False, repr=False, compare=False)
    may_read: bool = field(init=False, repr=False, compare=False)
    depends_on_contact: bool = field(init=False, repr=False, compare=False)
    depends_on_subscription: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Many requests share an access, so what most of them ask is found once.
        rights, options, model = RIGHTS[self.affiliation], self.options, self.options.access_model
        closed = rights.read is None and model is not AccessModel.OPEN
        for_subscribers = rights.publish is None and options.publish_model is PublishModel.SUBSCRIBERS
        object.__setattr__(self, "rights", rights)
        object.__setattr__(self, "depends_on_contact", closed and model is AccessModel.PRESENCE)
        object.__setattr__(self, "depends_on_subscription", closed or for_subscribers)
        object.__setattr__(self, "may_publish", self._may_publish() if rights.publish is None else rights.publish)
        object.__setattr__(self, "may_read", self.reading_error is None)

    @property
    def knows_node(self) -> bool:
        """Whether the actor may know that the node exists. If not, every response is that for a missing node."""
        if self.options.listed or not self.hides_closed:
            return True
        if self.affiliation is Affiliation.NONE:
            # The owner may have closed access after the actor subscribed. In an open publish model anybody may publish.
            subscribed = self.subscription is not SubscriptionState.NONE
            return subscribed or self.options.publish_model is PublishModel.OPEN
        return self.affiliation is not Affiliation.OUTCAST

    @property
    def sees_description(self) -> bool:
        """Whether lists show the node to the actor, and service discovery its title, creator and dates."""
        return self.affiliation in READERS or (self.affiliation not in KEPT_OUT and self.options.listed)

    @property
    def sees_items(self) -> bool:
        """Whether lists show the node to the actor, and the actor may read its items."""
        return self.may_read and self.sees_description

    @property
    def reading_error(self) -> FeedError | None:
        """The error for an actor who may not retrieve items or receive events, None if it may (xep-map 181, 184,
        185)."""
        read, model = self.rights.read, self.options.access_model
        if read is False:
            return FeedError(Condition.FORBIDDEN)
        if read or model is AccessModel.OPEN:
            return None
        if model is AccessModel.AUTHORIZE and self.subscription is SubscriptionState.SUBSCRIBED:
            return None
        if self.depends_on_contact and self.is_contact:
            return None
        return _closed_node(self.options.contact) if model is AccessModel.WHITELIST else FeedError(_CLOSED[model])

    def check_read(self) -> None:
        """Raises FeedError if the actor may not retrieve items (xep-map 184, 185)."""
        error = self.reading_error
        if error is not None:
            raise error

    @property
    def history_error(self) -> FeedError | None:
        """The error for an actor who may not receive sync data, None if it may. A node that hides its publishers sends
        them to its owners and publishers only.

        Sync data name the publishers of changes from before the node hid them. The names cannot be replaced, because
        mirrors have the old names and would merge a renamed change as a conflict.
        """
        if self.options.shows_publisher or self.rights.publish is True:
            return None
        return FeedError(
            Condition.FORBIDDEN,
            "this feed hides its publishers, and its sync data can name them; ask its owner to make you a publisher",
        )

    def _may_publish(self) -> bool:
        model = self.options.publish_model
        subscribed = self.subscription is SubscriptionState.SUBSCRIBED
        return model is PublishModel.OPEN or (model is PublishModel.SUBSCRIBERS and subscribed)

    def check_publish(self) -> None:
        """Raises FeedError(FORBIDDEN) if the actor may not publish."""
        if not self.may_publish:
            raise FeedError(Condition.FORBIDDEN)

    def check_manage(self) -> None:
        """Raises FeedError(FORBIDDEN) if the actor may not configure, purge or delete it (xep-map 66, 83, 97)."""
        if not self.rights.manage:
            raise FeedError(Condition.FORBIDDEN)

    def may_overwrite(self, *, own: bool) -> bool:
        """Whether the actor may publish under the id of an existing item, its own or somebody else's.

        Actors who may publish only by the publish model may not replace the content of other publishers.
        """
        return own or self.rights.publish is True

    def may_retract(self, *, own: bool) -> bool:
        """Whether the actor may retract an item, its own or somebody else's (xep-map 154, 155)."""
        return self.rights.retract_any or (own and self.rights.retract_own)

    def subscription_on_request(self) -> SubscriptionState:
        """The state that a request to subscribe leads to. Raises FeedError if the actor may not subscribe (xep-map 102,
        103, 104, 109)."""
        error = None if self.may_read else self.reading_error
        if error is None:
            return SubscriptionState.SUBSCRIBED
        if error.condition is Condition.NOT_SUBSCRIBED_READER:
            return SubscriptionState.PENDING
        raise error
