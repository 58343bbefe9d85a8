"""Registrations of callbacks: web addresses that ask to be told of the changes of a feed (WebSub, rssCloud)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from smartfeeds.core.consumers import Consumer


@dataclass(frozen=True, slots=True)
class CallbackKind:
    """A protocol of registrations. `name` is the kind of their consumers.

    `check` reads the texts of a registration, and raises one of `store.rows.DAMAGES` if they are damaged.
    """

    name: str
    check: Callable[["Callback"], object]


@dataclass(frozen=True, slots=True)
class Callback:
    """A registration. There is at most one for each kind, callback and topic.

    `kind` is the name of its kind. `callback_no` is its number, 0 before it is stored. `url` and `topic` are as the
    subscriber wrote them, `host` is the host of `url` in lower case. The subscription is that of `reader`, a bare JID
    with the token `token_id`; both are empty for an anonymous subscriber. `active`: deliveries are sent, up to
    `expires_us`. A registration that is not active is removed then. `settings` and `question` are texts of the protocol
    (JSON): what deliveries depend on, and what is to be asked or told at the callback at `due_us`, empty for nothing.
    `due_us` is None while no attempt is planned. `tried_us` and `result` describe the last delivery, for people.

    Texts that only the subscriber and this service may know are left out of `repr`: a secret, and the address, which
    the subscriber keeps unguessable (WebSub section 8.2).
    """

    kind: str
    node_no: int
    url: str = field(repr=False)
    topic: str
    host: str
    created_us: int
    expires_us: int
    callback_no: int = 0
    reader: str = ""
    token_id: str = ""
    active: bool = False
    settings: str = field(default="", repr=False)
    question: str = field(default="", repr=False)
    due_us: int | None = None
    tried_us: int | None = None
    result: str = ""

    @property
    def consumer(self) -> Consumer:
        """The consumer of the registration. Its name has no secret, and the host for the bound of deliveries to it."""
        return Consumer(self.node_no, f"{self.kind}:{self.callback_no}@{self.host}")


class SubscriptionPhase(Enum):
    """The state of a registration. The values are stable names for scripts."""

    CHECKING = "checking"
    ACTIVE = "active"
    RETRYING = "retrying"
    ENDING = "ending"


def number_of(consumer: Consumer) -> int:
    """Returns the number of the registration that a consumer belongs to."""
    return int(consumer.target.partition("@")[0])


def host_of(consumer: Consumer) -> str:
    """Returns the host of the callback that a consumer belongs to."""
    return consumer.target.partition("@")[2]
