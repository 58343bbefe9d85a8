"""The tables by which a feature adds requests, responses, ad-hoc commands and disco#info to the XMPP interface.

The kernel and each feature have an `XmppSide`. `app/sides.py` joins them for `StanzaRouter` and `Disco`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from smartfeeds.core.jid import Jid
from smartfeeds.service.requests import Request
from smartfeeds.xmpp.calls import IncomingIq
from smartfeeds.xmpp.commands import Command
from smartfeeds.xmpp.elements import Element

# From the payload of an IQ, the requester and the address of the service to a request. A response that needs no use
# case is returned instead, as the body of its IQ.
Reader = Callable[[Element, Jid, str], Request | bytes]


class Response(NamedTuple):
    """The stanzas of a response: the body of the IQ, and the messages before and after it.

    `kind` is the type of the IQ, result or error. `outcome` is ok or the condition of the error.
    """

    body: bytes
    before: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()
    kind: bytes = b"result"
    outcome: str = "ok"


# From the answer of a use case, the IQ that is answered, and a function that returns a new message id.
ResponseEncoder = Callable[[Any, IncomingIq, Callable[[], str]], Response]


def body_only(encode: Callable[[Any], bytes]) -> ResponseEncoder:
    """Returns an encoder of responses without messages."""
    return lambda answer, _iq, _new_id: Response(encode(answer))


@dataclass(frozen=True, slots=True)
class XmppSide:
    """The tables of the kernel or of a feature.

    `readers` have the type of the IQ and the tag of its payload as keys, `encoders` the type of the answer. `commands`
    are ad-hoc commands (XEP-0050). `features` are namespaces that disco#info of the service has, `node_features` those
    that disco#info of each node has (XEP-0030 section 3.1).
    """

    readers: Mapping[tuple[str, str], Reader] = field(default_factory=dict)
    encoders: Mapping[type, ResponseEncoder] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    features: tuple[str, ...] = ()
    node_features: tuple[str, ...] = ()


def joined(sides: Iterable[XmppSide]) -> XmppSide:
    """Returns the tables of several sides as one. Clients show commands in this order, which is that of their names."""
    joinable = tuple(sides)
    return XmppSide(
        {key: reader for side in joinable for key, reader in side.readers.items()},
        {kind: encoder for side in joinable for kind, encoder in side.encoders.items()},
        tuple(sorted((command for side in joinable for command in side.commands), key=attrgetter("name"))),
        tuple(feature for side in joinable for feature in side.features),
        tuple(feature for side in joinable for feature in side.node_features),
    )
