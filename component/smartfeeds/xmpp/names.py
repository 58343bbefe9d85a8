"""Bounds the names that the XML library learns from peers (xep-map 246; design section 3).

libxml2 keeps every element and attribute name that it ever saw for the life of the process. So new names are counted,
for all peers, for each domain and for each bare JID: one peer uses up its own share, and nobody else notices. Many
peers of one domain use up that of their domain: its users then bring no new names any more, and go on with those of
`vocabulary`, which cost nothing.

Counting costs as much as parsing, so of short stanzas only a random part is counted, the more the longer they are, and
each of these pays for those that were not. Nobody can tell which one will be counted. Who has spent half of a share is
watched from then on: all stanzas of that sender, or of that domain, are counted, at what they cost.
"""

import random
import re
from collections import OrderedDict
from collections.abc import Callable

import structlog

from smartfeeds.xmpp.framer import TAG_REST
from smartfeeds.xmpp.screening import sender_of
from smartfeeds.xmpp.vocabulary import WRITTEN

log = structlog.get_logger()

BUDGET_BYTES = 4_194_304
DOMAIN_SHARE = 2  # a domain may use half of the budget,
SENDER_SHARE = 64  # a bare JID this part of it
OVERHEAD_BYTES = 16
REMEMBERED = 16_384
COUNTED_BYTES = 8_192  # a stanza of this length is always counted, of shorter ones a part in proportion,
COUNTED_RATE = 1 / 8  # but at least this part

_TAG = re.compile(rb"<[^/!?]" + TAG_REST)
_NAMES = re.compile(rb"<[^\s/>]+|\sxmlns[^\s=]*\s*=\s*(?:\"[^\"]*|'[^']*)|\s[^\s=\"'<>/]+(?=\s*=\s*[\"'])")


def names_in(frame: bytes) -> set[bytes]:
    """The names of a stanza, as they are counted."""
    return set(_NAMES.findall(b" ".join(set(_TAG.findall(frame)))))  # tags are often alike


_ORDINARY = frozenset(names_in(WRITTEN))


class NameGuard:
    """Decides of each stanza whether the XML library may learn its names.

    `chance` returns numbers from 0 to below 1. They are never sent to anybody, so they need not be secret.
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._budget_bytes = budget_bytes
        self._domain_bytes = budget_bytes // DOMAIN_SHARE
        self._sender_bytes = budget_bytes // SENDER_SHARE
        self._known: set[bytes] = set(_ORDINARY)
        self._spent: OrderedDict[bytes, int] = OrderedDict()  # by bare JID and by domain; the longest unused goes first
        self._logged_domains: OrderedDict[bytes, None] = OrderedDict()  # domains whose end was logged
        self._watches = False  # whether anybody is watched; until then no sender is looked up

    @property
    def exhausted(self) -> bool:
        """Whether new names are refused from everybody."""
        return self._budget_bytes <= 0

    def admits(self, frame: bytes, sender: bytes | None = None) -> bool:
        """Whether a stanza may be parsed. `sender` is a bare JID; None stands for the one in the stanza."""
        rate = max(len(frame) / COUNTED_BYTES, COUNTED_RATE)
        if rate >= 1 or self.exhausted or (self._watches and self._is_watched(_parties_of(frame, sender))):
            rate = 1.0
        elif self._chance() >= rate:
            return True
        fresh = names_in(frame) - self._known
        if not fresh:
            return True
        if not self._pay(_parties_of(frame, sender), sum(map(len, fresh)) + OVERHEAD_BYTES * len(fresh), rate):
            return False
        self._known |= fresh
        return True

    def admits_of(self, sender: str, data: bytes) -> bool:
        """Whether XML in UTF-8 that is no stanza may be parsed. The names of processing instructions count too."""
        return self.admits(data.replace(b"<?", b"<"), sender.encode())

    def _share(self, party: bytes) -> int:
        return self._sender_bytes if b"@" in party else self._domain_bytes

    def _watched_from(self, party: bytes) -> int:
        return self._share(party) // 2

    def _is_watched(self, parties: tuple[bytes, ...]) -> bool:
        return any(self._spent.get(party, 0) >= self._watched_from(party) for party in parties)

    def _pay(self, parties: tuple[bytes, ...], cost_bytes: int, rate: float) -> bool:
        """Takes the price from the sender's share, its domain's and the whole; False where one of them is used up.

        The price of a sample may be far above the cost. It brings its payer to be watched and no further.
        """
        price_bytes = round(cost_bytes / rate)
        spent = {party: self._spent.get(party, 0) + price_bytes for party in parties}
        if rate < 1:
            spent = {party: min(used, self._watched_from(party)) for party, used in spent.items()}
        used_up = [party for party, used in spent.items() if used > self._share(party)]
        if self.exhausted or used_up:
            log.debug("new_names_refused", sender=parties[0].decode("utf-8", "replace"), exhausted=self.exhausted)
            for party in used_up:
                self._log_domain(party)
            return False
        self._budget_bytes -= price_bytes
        if self._budget_bytes <= 0:
            log.error("new_names_exhausted", advice="restart the service where new kinds of payloads are needed")
        for party, used in spent.items():
            self._watches = self._watches or used >= self._watched_from(party)
            self._spent[party] = used
            self._spent.move_to_end(party)
        while len(self._spent) > REMEMBERED:
            self._spent.popitem(last=False)
        return True

    def _log_domain(self, party: bytes) -> None:
        """Logs a domain whose share is used up: once, until it is forgotten. Senders are too many to be logged."""
        if b"@" in party:
            return
        if party not in self._logged_domains:
            domain = party.decode("utf-8", "replace")
            log.warning("new_names_of_domain_used_up", domain=domain, advice="restart the service once it is quiet")
        self._logged_domains[party] = None
        while len(self._logged_domains) > REMEMBERED:
            self._logged_domains.popitem(last=False)


def _parties_of(frame: bytes, sender: bytes | None) -> tuple[bytes, ...]:
    """The parties that pay for a stanza: the bare JID that it is from, and the domain of that."""
    if sender is None:
        sender = sender_of(frame) or b""
    domain = sender.rpartition(b"@")[2]
    return (sender,) if sender == domain else (sender, domain)
