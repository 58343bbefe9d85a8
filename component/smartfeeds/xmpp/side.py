"""The XMPP side of a part of the service, as a value: the stanzas that it reads, its responses, commands and features.

The kernel has one, and so has each feature. `StanzaRouter` and `Disco` work on all of them joined.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from smartfeeds.core.jid import Jid
from smartfeeds.service.requests import Request
from smartfeeds.xmpp.calls import IncomingIq
from smartfeeds.xmpp.commands import Command
from smartfeeds.xmpp.elements import Element

# Parameters: the payload, the requester, our address. Returns the request, or the body of a response that is known.
Reader = Callable[[Element, Jid, str], Request | bytes]


class Response(NamedTuple):
    """The stanzas of a response: the body of the IQ, and the messages before and after it. `outcome` is ok or the
    condition of an error.
    """

    body: bytes
    before: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()
    kind: bytes = b"result"
    outcome: str = "ok"


# Parameters: the answer of the service, the request, and a function that returns a new message id.
ResponseEncoder = Callable[[Any, IncomingIq, Callable[[], str]], Response]


def body_only(encode: Callable[[Any], bytes]) -> ResponseEncoder:
    """Returns the encoder of a response that is an IQ alone."""
    return lambda answer, _iq, _new_id: Response(encode(answer))


@dataclass(frozen=True, slots=True)
class XmppSide:
    """The tables of a part.

    `readers` read IQs, by their type and the tag of the payload. `encoders` write responses, by the type of the
    service's answer. `commands` are ad-hoc commands (XEP-0050). `features` are those of disco#info of the service, and
    `node_features` those of each node.
    """

    readers: Mapping[tuple[str, str], Reader] = field(default_factory=dict)
    encoders: Mapping[type, ResponseEncoder] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    features: tuple[str, ...] = ()
    node_features: tuple[str, ...] = ()


def joined(sides: Iterable[XmppSide]) -> XmppSide:
    """Returns the tables of several parts as one. Commands are in the order of their names, as clients show them."""
    parts = tuple(sides)
    return XmppSide(
        {key: reader for part in parts for key, reader in part.readers.items()},
        {kind: encoder for part in parts for kind, encoder in part.encoders.items()},
        tuple(sorted((command for part in parts for command in part.commands), key=lambda command: command.name)),
        tuple(feature for part in parts for feature in part.features),
        tuple(feature for part in parts for feature in part.node_features),
    )
