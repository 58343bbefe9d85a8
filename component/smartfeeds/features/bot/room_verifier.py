"""Verifies that an address is a room of a conference service, by service discovery (XEP-0045 sections 6.2 and 6.4).

An account has an address like that of a room, and its client can send the presence of an occupant in any name. A room
can only speak for its occupants because its service writes their addresses, so both must prove what they are: the
domain that it is a conference service without accounts, and the bare address that it is a room. A stranger can run such
a service below the domain of the users, as `rooms.guests.example.org`. So the server of the users must list it among
its own services, too (XEP-0045 section 6.1). Servers answer these requests, never a client: a client sends from a full
address, and a response counts only with the id of the request and from the very address that was asked
(`xmpp.pending_iqs`).
"""

import asyncio
from collections.abc import Callable

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.errors import LinkError
from smartfeeds.features.bot.delivery import Call
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.caps import DiscoInfo, read_info

ANSWER_S = 10.0  # the person who has written waits for this
VALID_S = 60.0  # a domain may be given to something else while the link stays
REMEMBERED = 1_000  # results; the oldest is dropped
_INFO_QUERY = f"<query xmlns='{ns.DISCO_INFO}'/>".encode()
_ITEMS_QUERY = f"<query xmlns='{ns.DISCO_ITEMS}'/>".encode()
_ITEMS = f"{ns.tag(ns.DISCO_ITEMS, 'query')}/{ns.tag(ns.DISCO_ITEMS, 'item')}"
# Categories of addresses at which users, or users of another network, choose what is sent. A gateway to IRC, for
# instance, names the host that an IRC user claims as the address of an occupant.
_OF_USERS = frozenset({"account", "client", "gateway", "server"})
_PEP = ("pubsub", "pep")  # an account, too (XEP-0163 section 6)


class RoomVerifier:
    """Asks the servers what addresses are. `call` sends an IQ, and `monotonic` returns seconds."""

    def __init__(self, call: Call, monotonic: Callable[[], float]) -> None:
        self._call = call
        self._monotonic = monotonic
        # By the room and the domain of its users: the time of the result, and the result, oldest first.
        self._results: dict[tuple[Jid, str], tuple[float, bool]] = {}

    async def is_room(self, room: Jid, domain: str) -> bool:
        """Returns whether a bare address is proved to be a room of the server that has this domain. An error, or no
        response, proves nothing."""
        key, now_s = (room, domain), self._monotonic()
        since_s, result = self._results.get(key, (now_s - VALID_S, False))
        if now_s - since_s < VALID_S:
            return result
        proofs = self._is_conference(room.domain), self._is_conference(str(room)), self._lists(domain, room.domain)
        result = all(await asyncio.gather(*proofs))
        self._results.pop(key, None)
        self._results[key] = (self._monotonic(), result)
        if len(self._results) > REMEMBERED:
            del self._results[next(iter(self._results))]
        return result

    async def _is_conference(self, address: str) -> bool:
        try:
            info = read_info(await self._call("get", address, _INFO_QUERY, ANSWER_S))
        except (LinkError, TimeoutError):
            return False
        return info is not None and is_conference(info)

    async def _lists(self, domain: str, service: str) -> bool:
        """Whether the server of a domain names a service as one of its own."""
        try:
            response = await self._call("get", domain, _ITEMS_QUERY, ANSWER_S)
        except (LinkError, TimeoutError):
            return False
        items = response.iterfind(_ITEMS) if response.get("type") == "result" else ()
        return any(parse_jid(item.get("jid", "")) == Jid("", service) for item in items if item.get("node") is None)


def is_conference(info: DiscoInfo) -> bool:
    """Returns whether information is that of a conference service or a room, and of nothing where users have accounts.

    Types of conferences other than `text`, such as `irc`, are gateways (XEP-0045 section 6.2 requires `text`).
    """
    identities = {(each.category.casefold(), each.type.casefold()) for each in info.identities}
    kinds = {kind for category, kind in identities if category == "conference"}
    of_users = _PEP in identities or any(category in _OF_USERS for category, _ in identities)
    return kinds == {"text"} and not of_users and ns.MUC in info.features
