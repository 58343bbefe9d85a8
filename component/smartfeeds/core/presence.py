"""Presence: the contacts of the service, and the available resources of its contacts (RFC 6121 sections 3 and 4)."""

from enum import StrEnum
from typing import NamedTuple


class ContactState(StrEnum):
    """The state of our request to subscribe to the presence of a contact (RFC 6121 section 3.1)."""

    ASKED = "asked"
    GRANTED = "granted"
    REFUSED = "refused"


class Contact(NamedTuple):
    """A bare JID that is subscribed to the presence of one of our addresses.

    `state` is about the opposite direction: the service subscribes back, so that it learns when the contact is online.
    """

    address: str
    jid: str
    state: ContactState

    @property
    def is_watched(self) -> bool:
        """Whether the contact may send its presence."""
        return self.state is not ContactState.REFUSED


class Resource(NamedTuple):
    """The presence of one available resource."""

    priority: int = 0


Key = tuple[str, str]  # our address, and the bare JID of the contact


class Availability:
    """The available resources of the watched contacts. Memory only; probes rebuild it after each connection.

    Presence of other senders is not stored. `contacts_max` bounds the contacts, `resources_max` the resources of each
    contact; if there are more, the resource that was noted first is dropped.
    """

    def __init__(self, contacts_max: int = 200_000, resources_max: int = 32) -> None:
        self._contacts_max = contacts_max
        self._resources_max = resources_max
        self._contacts: dict[Key, dict[str, Resource]] = {}

    def watch(self, address: str, jid: str) -> None:
        """Starts to store the presence that a contact sends to one of our addresses."""
        if len(self._contacts) < self._contacts_max:
            self._contacts.setdefault((address, jid), {})

    def forget(self, address: str, jid: str) -> None:
        """Stops to store the presence of a contact."""
        self._contacts.pop((address, jid), None)

    def clear(self) -> None:
        """Forgets all contacts, because the link was lost and their presence may have changed."""
        self._contacts.clear()

    def note(self, address: str, jid: str, name: str, resource: Resource) -> bool:
        """Stores the presence of a resource. Returns True if the resource was not available before."""
        resources = self._contacts.get((address, jid))
        if resources is None:
            return False
        is_new = name not in resources
        if is_new and len(resources) >= self._resources_max:
            del resources[next(iter(resources))]
        resources[name] = resource
        return is_new

    def leave(self, address: str, jid: str, name: str) -> None:
        """Removes a resource, or all resources if `name` is empty."""
        resources = self._contacts.get((address, jid))
        if resources is None:
            return
        if name:
            resources.pop(name, None)
        else:
            resources.clear()

    def resources(self, address: str, jid: str) -> dict[str, Resource]:
        """Returns the available resources of a contact by name."""
        return dict(self._contacts.get((address, jid), ()))
