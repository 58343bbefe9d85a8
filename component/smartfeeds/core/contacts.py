"""Contacts: users who are subscribed to the presence of the service (RFC 6121 section 3).

The access model `presence` admits them (XEP-0060 4.5), and events of some subscriptions wait for their presence.
"""

from enum import StrEnum
from typing import NamedTuple


class ContactState(StrEnum):
    """The state of our request to subscribe to the presence of a contact (RFC 6121 section 3.1)."""

    ASKED = "asked"
    GRANTED = "granted"
    REFUSED = "refused"


class Contact(NamedTuple):
    """A bare JID that is subscribed to the presence of one of our addresses.

    The service subscribes to the presence of the contact in return, so that it learns when the contact is online.
    `state` is the state of that request.
    """

    address: str
    jid: str
    state: ContactState

    @property
    def is_watched(self) -> bool:
        """Whether the contact may send its presence."""
        return self.state is not ContactState.REFUSED

    @property
    def is_granted(self) -> bool:
        """Whether the contact has accepted our request, so that its presence is known."""
        return self.state is ContactState.GRANTED
