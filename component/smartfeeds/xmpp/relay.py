"""The other processes with a link of the same domain, as the link of this process sees them.

This one is for a process that is alone. A feature may pass stanzas between processes (docs/scaling.md, "Links").
"""

from lxml import etree

from smartfeeds.xmpp.turns import StanzaWork


class Relay:
    """`instance` is the id of this process. Its requests have it in their ids.

    `is_leaving`: the process stops, and others answer new requests.
    """

    def __init__(self, instance: str = "") -> None:
        self.instance = instance
        self.is_leaving = False

    def hand_over(self, _element: etree._Element) -> bool:
        """Passes a stanza to another process, because this one stops. Returns whether it did."""
        return False

    def share(self, element: etree._Element, work: StanzaWork | bool = True) -> None:
        """Shows presence or a message to all other processes. `work` is what the callback of the stream returned."""

    def return_answer(self, _iq: etree._Element) -> bool:
        """Passes a response to the process that has sent the request. Returns False if there is no such process."""
        return False
