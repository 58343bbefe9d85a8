"""Presence: the available resources of the contacts of the service (RFC 6121 section 4)."""

from collections.abc import Collection
from typing import NamedTuple

from smartfeeds.core.suboptions import ONLINE, SHOWS
from smartfeeds.features.presence.last_items import RESOURCES_MAX
from smartfeeds.xmpp.caps import Caps


class OnlineResource(NamedTuple):
    """The presence of one available resource.

    `show` is one of `SHOWS`. `caps` names what the client can do (`caps`), None if the presence does not say.
    """

    priority: int = 0
    show: str = ONLINE
    caps: Caps | None = None


_Resources = dict[str, OnlineResource]


class Availability:
    """The available resources of the watched contacts. Memory only; probes rebuild it after each connection.

    Presence of other senders is not stored. `contacts_max` bounds the contacts, `resources_max` the resources of each
    contact; further ones are ignored. A bare JID may be a contact of several of our addresses. It is available if it
    is available at one of them.
    """

    def __init__(self, contacts_max: int = 200_000, resources_max: int = RESOURCES_MAX) -> None:
        self._contacts_max = contacts_max
        self._resources_max = resources_max
        self._count = 0
        self._contacts: dict[str, dict[str, _Resources]] = {}  # by bare JID and our address
        self._granted: set[tuple[str, str]] = set()

    def watch(self, address: str, jid: str, *, granted: bool) -> None:
        """Starts storing the presence that a contact sends to one of our addresses.

        `granted`: the contact has accepted our request. If no resource is known, such a contact is offline.
        """
        addresses = self._contacts.get(jid, {})
        if address not in addresses:
            if self._count >= self._contacts_max:
                return
            self._count += 1
            self._contacts.setdefault(jid, addresses)[address] = {}
        if granted:
            self._granted.add((address, jid))

    def watches(self, address: str, jid: str) -> bool:
        """Returns whether the presence that a bare JID sends to one of our addresses is stored."""
        return address in self._contacts.get(jid, {})

    def forget(self, address: str, jid: str) -> list[str]:
        """Stops storing the presence of a contact. Returns the names of its resources that are not available at our
        other addresses."""
        names = self.leave(address, jid, "")
        addresses = self._contacts.get(jid, {})
        if addresses.pop(address, None) is not None:
            self._count -= 1
        if not addresses:
            self._contacts.pop(jid, None)
        self._granted.discard((address, jid))
        return names

    def clear(self) -> None:
        """Removes all resources, because the link was lost and they may have changed. The contacts remain."""
        for resources in (each for addresses in self._contacts.values() for each in addresses.values()):
            resources.clear()

    def note(self, address: str, jid: str, name: str, resource: OnlineResource) -> bool:
        """Stores the presence of a resource. Returns False if the service does not store it."""
        resources = self._contacts.get(jid, {}).get(address)
        if resources is None or (name not in resources and len(resources) >= self._resources_max):
            return False
        resources[name] = resource
        return True

    def leave(self, address: str, jid: str, name: str) -> list[str]:
        """Removes a resource, or all resources if `name` is empty. Returns the names of those that are not available at
        our other addresses."""
        resources = self._contacts.get(jid, {}).get(address, {})
        names = [each for each in resources if name in ("", each)]
        for each in names:
            del resources[each]
        available = self.resources_of(jid)
        return [each for each in names if each not in available]

    def resources(self, address: str, jid: str) -> dict[str, OnlineResource]:
        """Returns the available resources of a contact by name."""
        return dict(self._contacts.get(jid, {}).get(address, ()))

    def resources_of(self, jid: str) -> dict[str, OnlineResource]:
        """Returns the available resources of a bare JID at all our addresses by name."""
        return {name: each for resources in self._contacts.get(jid, {}).values() for name, each in resources.items()}

    def addresses_of(self, jid: str, name: str) -> list[str]:
        """Returns our addresses at which a resource is available."""
        return [address for address, resources in self._contacts.get(jid, {}).items() if name in resources]

    def is_available(self, jid: str, shows: Collection[str] = SHOWS) -> bool | None:
        """Returns whether a message to an address reaches a person now; None if the service does not know.

        `jid` is a bare or a full JID. A bare JID is available with a resource that accepts messages to it: one with a
        priority of at least 0 (RFC 6121 section 8.5.2.1). Only resources with one of these `shows` count. The presence
        is known for a contact that has accepted our request or has sent presence.
        """
        bare, _, name = jid.partition("/")
        addresses = self._contacts.get(bare)
        if addresses is None:
            return None
        resources = self.resources_of(bare)
        if not resources and not any((address, bare) in self._granted for address in addresses):
            return None
        if name:
            return name in resources and resources[name].show in shows
        return any(each.priority >= 0 and each.show in shows for each in resources.values())
