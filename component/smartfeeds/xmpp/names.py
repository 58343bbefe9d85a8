"""Limits how many new names of elements and attributes the XML library stores for peers (xep-map 246).

libxml2 stores each name for the life of the process. So new names are counted for all peers together, for each domain
and for each bare JID. A peer that has used up its share cannot introduce new names; other peers still can. If many
peers of a domain have used up the share of the domain, none of its users can introduce new names. The names in
`vocabulary` are not counted, so ordinary requests always work.

Counting takes as long as parsing. So a random sample of the short stanzas is counted, at a rate that grows with their
length, and a sampled stanza pays for those that were not counted. A sender or a domain that has used up half of its
share is watched: each of its stanzas is counted, at its own price.
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
DOMAIN_SHARE = 2  # a domain may use one half of the budget
SENDER_SHARE = 64  # a bare JID may use 1/64 of the budget
OVERHEAD_BYTES = 16  # of each name in the dictionary of libxml2
REMEMBERED = 16_384
COUNTED_BYTES = 8_192  # a stanza of this length is always counted, a shorter one at a rate in proportion
COUNTED_RATE = 1 / 8  # the lowest rate

_TAG = re.compile(rb"<[^/!?]" + TAG_REST)
_NAMES = re.compile(rb"<[^\s/>]+|\sxmlns[^\s=]*\s*=\s*(?:\"[^\"]*|'[^']*)|\s[^\s=\"'<>/]+(?=\s*=\s*[\"'])")


def names_in(frame: bytes) -> set[bytes]:
    """Returns the distinct names in a stanza."""
    return set(_NAMES.findall(b" ".join(set(_TAG.findall(frame)))))  # many tags repeat


_ORDINARY = frozenset(names_in(WRITTEN))


class NameGuard:
    """Decides whether a stanza may be parsed, which stores its names.

    `chance` returns numbers from 0 to below 1. Peers cannot observe them, so they need not be secret.
    """

    def __init__(self, budget_bytes: int = BUDGET_BYTES, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._budget_bytes = budget_bytes
        self._domain_bytes = budget_bytes // DOMAIN_SHARE
        self._sender_bytes = budget_bytes // SENDER_SHARE
        self._known: set[bytes] = set(_ORDINARY)
        self._spent: OrderedDict[bytes, int] = (
            OrderedDict()
        )  # bytes by bare JID and by domain, the longest unused first
        self._logged_domains: OrderedDict[bytes, None] = OrderedDict()  # domains whose used-up share was logged
        self._watches = False  # whether any party is watched; before that, looking up senders is not necessary

    @property
    def exhausted(self) -> bool:
        """Whether the whole budget is used up, so that no peer can introduce new names."""
        return self._budget_bytes <= 0

    def admits(self, frame: bytes, sender: bytes | None = None) -> bool:
        """Returns whether a stanza may be parsed. `sender` is a bare JID, by default that of the stanza."""
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
        """Returns whether XML in UTF-8 from HTTP may be parsed. The names of processing instructions count too."""
        return self.admits(data.replace(b"<?", b"<"), sender.encode())

    def _share(self, party: bytes) -> int:
        return self._sender_bytes if b"@" in party else self._domain_bytes

    def _watched_from(self, party: bytes) -> int:
        return self._share(party) // 2

    def _is_watched(self, parties: tuple[bytes, ...]) -> bool:
        return any(self._spent.get(party, 0) >= self._watched_from(party) for party in parties)

    def _pay(self, parties: tuple[bytes, ...], cost_bytes: int, rate: float) -> bool:
        """Charges the sender, its domain and the whole budget. Returns False if one of them is used up.

        The price of a sampled stanza may be far above its cost. So it can make a party watched, but not use up a share.
        """
        price_bytes = round(cost_bytes / rate)
        spent = {party: self._spent.get(party, 0) + price_bytes for party in parties}
        if rate < 1:
            spent = {party: min(spent_bytes, self._watched_from(party)) for party, spent_bytes in spent.items()}
        used_up = [party for party, spent_bytes in spent.items() if spent_bytes > self._share(party)]
        if self.exhausted or used_up:
            log.debug("new_names_refused", sender=parties[0].decode("utf-8", "replace"), exhausted=self.exhausted)
            for party in used_up:
                self._log_domain(party)
            return False
        self._budget_bytes -= price_bytes
        if self._budget_bytes <= 0:
            log.error("new_names_exhausted", advice="restart the service to accept new kinds of payloads")
        for party, spent_bytes in spent.items():
            self._watches = self._watches or spent_bytes >= self._watched_from(party)
            self._spent[party] = spent_bytes
            self._spent.move_to_end(party)
        while len(self._spent) > REMEMBERED:
            self._spent.popitem(last=False)
        return True

    def _log_domain(self, party: bytes) -> None:
        """Logs a domain whose share is used up, once. There are too many senders to log them."""
        if b"@" in party:
            return
        if party not in self._logged_domains:
            domain = party.decode("utf-8", "replace")
            log.warning("new_names_of_domain_used_up", domain=domain, advice="restart the service once it is quiet")
        self._logged_domains[party] = None
        while len(self._logged_domains) > REMEMBERED:
            self._logged_domains.popitem(last=False)


def _parties_of(frame: bytes, sender: bytes | None) -> tuple[bytes, ...]:
    """Returns the parties that pay for a stanza: its sender and the sender's domain."""
    if sender is None:
        sender = sender_of(frame) or b""
    domain = sender.rpartition(b"@")[2]
    return (sender,) if sender == domain else (sender, domain)
