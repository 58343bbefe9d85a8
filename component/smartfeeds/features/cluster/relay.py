"""Stanzas between processes that share a component name (docs/scaling.md, "Links").

The server sends each stanza to any connection of the name. Most requests can be answered by any process. A response
goes on to the process that has sent the request. Presence, and events for mirrors, go on to all processes. A process
that stops passes new requests to another process until the server has closed its connection.
"""

import asyncio
from collections.abc import Callable

from lxml import etree

from smartfeeds.features.cluster.letter import ANY_PROCESS, EVERY_PROCESS, LetterTopic, write_letter
from smartfeeds.xml_names import parse_xml
from smartfeeds.xmpp.parsing import COMPONENT_NS
from smartfeeds.xmpp.requests import instance_of

_IQ = f"{{{COMPONENT_NS}}}iq"
# Presence that changes a row of the store, which the other processes then read (RFC 6121 section 3).
_CONTACT_CHANGES = frozenset({"subscribe", "subscribed", "unsubscribe", "unsubscribed"})


class StanzaRelay:
    """Passes stanzas on by `post`, whose parameters are the recipient and the letter. It returns whether the
    letter will be sent.

    `instance` is the id of this process. `has_others` returns whether another process has a connection now.
    """

    def __init__(
        self,
        instance: str = "",
        post: Callable[[str, bytes], bool] = lambda _recipient, _data: False,
        has_others: Callable[[], bool] = lambda: False,
    ) -> None:
        self.instance = instance
        self._post = post
        self._has_others = has_others
        self._is_leaving = False

    def leave(self) -> None:
        """Passes all new stanzas but responses to another process from now on."""
        self._is_leaving = True

    def hand_over(self, element: etree._Element) -> bool:
        """Passes a stanza to another process if this process stops. Returns whether it did."""
        # A response is for this process, which waits for it.
        if not self._is_leaving or (element.tag == _IQ and element.get("type") in ("result", "error")):
            return False
        return self._post(ANY_PROCESS, write_letter(LetterTopic.HANDED, _written(element)))

    def share(self, element: etree._Element, work: "asyncio.Future[float] | bool" = True) -> None:
        """Shows a stanza to all other processes. `work` is the task that handles it, if there is one."""
        if not self._has_others():
            return
        letter = write_letter(LetterTopic.SHARED, _written(element))
        if isinstance(work, asyncio.Future) and element.get("type") in _CONTACT_CHANGES:
            work.add_done_callback(lambda _task: self._post(EVERY_PROCESS, letter))
        else:
            self._post(EVERY_PROCESS, letter)

    def return_answer(self, iq: etree._Element) -> bool:
        """Passes a response to the process that has sent the request. Returns False if there is no such process."""
        instance = instance_of(iq)
        is_foreign = instance not in ("", self.instance) and self._has_others()
        if is_foreign:
            self._post(instance, write_letter(LetterTopic.SHARED, _written(iq)))
        return is_foreign


def _written(stanza: etree._Element) -> bytes:
    # ASCII, the default, would write a name beyond it as character references, which are no XML.
    return etree.tostring(stanza, encoding="utf-8", with_tail=False)


def read_stanza(data: bytes) -> etree._Element:
    """Returns a stanza that another process has passed on. That process has checked it when it arrived."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return parse_xml(data, parser)
