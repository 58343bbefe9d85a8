"""Stanzas between processes that share a component name (docs/scaling.md, "Links").

The server sends each stanza to any connection of the name. Most requests can be answered by any process. A response
goes on to the process that has sent the request. Presence, and events for mirrors, go on to all processes. A process
that stops passes new requests to another process until the server has closed its connection.
"""

from collections.abc import Callable

from lxml import etree

from smartfeeds.features.cluster.letter import ANY_PROCESS, EVERY_PROCESS, HANDED, SHARED, write_letter
from smartfeeds.xml_names import parse_xml
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.pending_iqs import instance_of
from smartfeeds.xmpp.relay import Relay
from smartfeeds.xmpp.turns import StanzaWork

_IQ = f"{{{COMPONENT_NS}}}iq"
_PRESENCE = f"{{{COMPONENT_NS}}}presence"
# Presence that changes a row of the store, which the other processes then read (RFC 6121 section 3).
_CONTACT_CHANGES = frozenset({"subscribe", "subscribed", "unsubscribe", "unsubscribed"})


class StanzaRelay(Relay):
    """Passes stanzas on by `post`, whose parameters are the recipient and the letter. It returns whether the
    letter will be sent.

    `instance` is the id of this process. `has_others` returns whether another process has a connection now. `concerns`
    returns whether other processes must know of a message that this one has handled.
    """

    def __init__(
        self,
        instance: str,
        post: Callable[[str, bytes], bool],
        has_others: Callable[[], bool],
        concerns: Callable[[etree._Element], bool] = lambda _message: False,
    ) -> None:
        super().__init__(instance)
        self._post = post
        self._has_others = has_others
        self._concerns = concerns

    def leave(self) -> None:
        """Passes all new stanzas but responses to another process from now on."""
        self.is_leaving = True

    def hand_over(self, element: etree._Element) -> bool:
        """Passes a stanza to another process if this process stops. Returns whether it did."""
        # A response is for this process, which waits for it.
        if not self.is_leaving or (element.tag == _IQ and element.get("type") in ("result", "error")):
            return False
        return self._post(ANY_PROCESS, write_letter(HANDED, _written(element)))

    def share(self, element: etree._Element, work: StanzaWork | bool = True) -> None:
        """Shows a stanza to all other processes. `work` is what goes on with it, or whether this process has handled
        it."""
        if not self._has_others():
            return
        # Each process knows who is available. The mirror of a message, or the delivery that an error is about, may be
        # the work of another process.
        if element.tag != _PRESENCE and work and not self._concerns(element):
            return
        letter = write_letter(SHARED, _written(element))
        if isinstance(work, StanzaWork) and element.get("type") in _CONTACT_CHANGES:
            work.when_ended(lambda _spent_s: self._post(EVERY_PROCESS, letter))
        else:
            self._post(EVERY_PROCESS, letter)

    def return_answer(self, iq: etree._Element) -> bool:
        """Passes a response to the process that has sent the request. Returns False if there is no such process."""
        instance = instance_of(iq)
        is_foreign = instance not in ("", self.instance) and self._has_others()
        if is_foreign:
            self._post(instance, write_letter(SHARED, _written(iq)))
        return is_foreign


def _written(stanza: etree._Element) -> bytes:
    # ASCII, the default, would write a name beyond it as character references, which are no XML.
    return etree.tostring(stanza, encoding="utf-8", with_tail=False)


def read_stanza(data: bytes) -> etree._Element:
    """Returns a stanza that another process has passed on. That process has checked it when it arrived."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return parse_xml(data, parser)
