"""Bounds the names that the XML library learns from peers (xep-map 246; design section 3).

libxml2 keeps every element and attribute name that it ever saw for the life of the process. So new names are counted,
for all peers, for each domain and for each bare JID: one peer uses up its own share, and nobody else notices. Many
peers of one domain use up that of their domain: its users then bring no new names any more, and go on with those of
`vocabulary`, which cost nothing.
"""

import re
from collections import OrderedDict

import structlog

from smartfeeds.core.text import attribute
from smartfeeds.xmpp.framer import TAG_REST, start_of
from smartfeeds.xmpp.vocabulary import WRITTEN

log = structlog.get_logger()

BUDGET_BYTES = 4_194_304
DOMAIN_SHARE = 2  # a domain may use half of the budget,
SENDER_SHARE = 64  # a bare JID this part of it
OVERHEAD_BYTES = 16
REMEMBERED = 16_384
# Counting costs more than a short stanza does, so of those only a sample is counted, for more than it cost; after one
# with many new names, or with more than its sender may add, all are.
SAMPLE_EVERY = 64
SAMPLE_WEIGHT = 8
SAMPLE_ALL_ABOVE_BYTES = 8_192
MANY_BYTES = 512
ALERT = 512

_TAG = re.compile(rb"<[^/!?]" + TAG_REST)
_NAMES = re.compile(rb"<[^\s/>]+|\sxmlns[^\s=]*\s*=\s*(?:\"[^\"]*|'[^']*)|\s[^\s=\"'<>/]+(?=\s*=\s*[\"'])")


def names_in(frame: bytes) -> set[bytes]:
    """The names of a stanza, as they are counted."""
    return set(_NAMES.findall(b" ".join(set(_TAG.findall(frame)))))  # tags are often alike


_ORDINARY = frozenset(names_in(WRITTEN))


class NameGuard:
    """Says of each stanza whether its names may be learnt. `exhausted`: nobody may bring new names any more."""

    __slots__ = ("_alert", "_budget_bytes", "_domain_bytes", "_known", "_sender_bytes", "_spent", "_told", "_turn")

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._domain_bytes = budget_bytes // DOMAIN_SHARE
        self._sender_bytes = budget_bytes // SENDER_SHARE
        self._known: set[bytes] = set(_ORDINARY)
        self._spent: OrderedDict[str, int] = OrderedDict()  # by bare JID and by domain; the longest unused goes first
        self._told: OrderedDict[str, None] = OrderedDict()  # domains whose end was logged
        self._turn = 0
        self._alert = 0  # so many stanzas are still counted in full

    @property
    def exhausted(self) -> bool:
        """Whether new names are refused from everybody."""
        return self._budget_bytes <= 0

    def admits(self, frame: bytes) -> bool:
        """Whether the stanza may be parsed."""
        self._turn = (self._turn + 1) % SAMPLE_EVERY
        whole = self._alert > 0 or len(frame) > SAMPLE_ALL_ABOVE_BYTES or self.exhausted
        if self._turn and not whole:
            return True
        self._alert = max(self._alert - 1, 0)
        fresh = names_in(frame) - self._known
        if not fresh:
            return True
        cost_bytes = sum(map(len, fresh)) + OVERHEAD_BYTES * len(fresh)
        if cost_bytes > MANY_BYTES:
            self._alert = ALERT
        if not self._pay(frame, cost_bytes if whole else cost_bytes * SAMPLE_WEIGHT):
            self._alert = ALERT
            return False
        self._known |= fresh
        return True

    def admits_of(self, sender: str, data: bytes) -> bool:
        """The same for XML in UTF-8 that came another way from a bare JID; names of instructions count too."""
        return self.admits(b"<x from='%b'/>%b" % (attribute(sender).encode(), data.replace(b"<?", b"<")))

    def _pay(self, frame: bytes, cost_bytes: int) -> bool:
        """Takes the price from the sender's share, its domain's and the whole; False where one of them is used up."""
        sender = start_of(frame)[1].get("from", "").partition("/")[0]
        domain = sender.rpartition("@")[2]
        shares = {domain: self._domain_bytes, sender: self._sender_bytes if "@" in sender else self._domain_bytes}
        spent = {name: self._spent.get(name, 0) + cost_bytes for name in shares}
        if self.exhausted or any(spent[name] > share for name, share in shares.items()):
            log.debug("new_names_refused", sender=sender, exhausted=self.exhausted)
            if spent[domain] > self._domain_bytes:
                self._tell(domain)
            return False
        self._budget_bytes -= cost_bytes
        if self._budget_bytes <= 0:
            log.error("new_names_exhausted", advice="restart the service where new kinds of payloads are needed")
        for name, used in spent.items():
            self._spent[name] = used
            self._spent.move_to_end(name)
        while len(self._spent) > REMEMBERED:
            self._spent.popitem(last=False)
        return True

    def _tell(self, domain: str) -> None:
        """Once for each domain, as far as memory goes."""
        if domain not in self._told:
            log.warning("new_names_of_domain_used_up", domain=domain, advice="restart the service once it is quiet")
        self._told[domain] = None
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
