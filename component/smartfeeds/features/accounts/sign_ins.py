"""Sign-ins through XMPP: a browser gets a code, and the user confirms the code from their account.

A sign-in lives in memory for a few minutes. It belongs to one browser (a random cookie) and works once. The user
confirms it by a chat message with the code, or by the request that XEP-0070 sends to the address that they typed. Each
process on a database has the sign-ins of all of them: `on_change` and `receive` carry the changes.
"""

import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from smartfeeds.core.ip_addresses import network_of
from smartfeeds.core.jid import Jid
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError

LIFETIME_S = 300
PER_ADDRESS = 20  # sign-ins that one network (`network_of`) may begin in the lifetime of a code
PER_JID = 3  # requests that one user receives in that time, whoever types their address
WRONG_CODES = 10  # wrong codes of one user in that time
MOST = 10_000  # sign-ins in memory: some 5 MB
ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # without 0, O, 1 and I, which look alike
CODE_CHARACTERS = 8  # 40 bits; with WRONG_CODES a guess succeeds once in 100,000,000 tries of one user
_NO_CODE = re.compile(r"[^0-9A-Z]")


class SignInState(Enum):
    """The response of the user to a request to sign in."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REFUSED = "refused"


@dataclass(slots=True)
class SignIn:
    """A sign-in that has begun.

    `browser` is the digest of the cookie of the browser, "" after the sign-in was used or given up. `address` is the
    network address of the browser, `site` the name and the address of this site as the user sees them. `target` is the
    bare JID that must confirm, None if any user may. `path` is the page to return to. `informed` is the user who was
    told which address and which site ask: nobody else can confirm. `jid` is the user who confirmed.
    """

    browser: str = field(repr=False)
    code: str = field(repr=False)
    address: str
    site: str
    target: Jid | None
    path: str
    began_us: int
    informed: Jid | None = None
    state: SignInState = SignInState.WAITING
    jid: Jid | None = None

    @property
    def shown_code(self) -> str:
        """The code for people, in two groups."""
        return f"{self.code[:4]}-{self.code[4:]}"


class SignIns:
    """The sign-ins of the last minutes. `clock` returns microseconds, `choose` one character of a text. `on_change`
    receives each sign-in that has begun or changed in this process."""

    def __init__(
        self,
        clock: Callable[[], int],
        choose: Callable[[str], str] = secrets.choice,
        on_change: Callable[[SignIn], object] = lambda _sign_in: None,
    ) -> None:
        self._clock = clock
        self._choose = choose
        self._on_change = on_change
        self._by_code: dict[str, SignIn] = {}  # in the order in which they began
        self._wrong: list[tuple[int, str]] = []  # time and bare JID of wrong codes, in their order

    def __iter__(self) -> Iterator[SignIn]:
        self._forget()
        return iter(self._by_code.values())

    def begin(self, browser: str, address: str, site: str, target: Jid | None, path: str) -> SignIn:
        """Begins a sign-in.

        Raises FeedError(BUSY) if this address began too many, or if the target received too many requests.
        """
        self._forget()
        sign_ins = self._by_code.values()
        network = network_of(address)
        if len(sign_ins) >= MOST or sum(network_of(sign_in.address) == network for sign_in in sign_ins) >= PER_ADDRESS:
            raise FeedError(Condition.BUSY, "too many sign-ins from your address; try again in five minutes")
        if target is not None and sum(sign_in.target == target for sign_in in sign_ins) >= PER_JID:
            raise FeedError(Condition.BUSY, f"{target} received {PER_JID} requests; try again in five minutes")
        code = "".join(self._choose(ALPHABET) for _ in range(CODE_CHARACTERS))
        sign_in = SignIn(_digest(browser), code, address, site, target, path, self._clock())
        self._by_code[code] = sign_in
        self._on_change(sign_in)
        return sign_in

    def inform(self, sign_in: SignIn, user: Jid) -> None:
        """Notes that a user is told which address and which site ask."""
        sign_in.informed = user.bare
        self._on_change(sign_in)

    def drop(self, browser: str) -> None:
        """Ends the sign-in of a browser, if there is one. It stays in memory, because it counts."""
        former = self.of_browser(browser)
        if former is not None:
            former.browser, former.state = "", SignInState.REFUSED
            self._on_change(former)

    def of_browser(self, browser: str) -> SignIn | None:
        """The sign-in of a browser; None if there is none, or if it is too old."""
        self._forget()
        digest = _digest(browser)
        return next((sign_in for sign_in in self._by_code.values() if digest and sign_in.browser == digest), None)

    def find(self, text: str, user: Jid) -> SignIn | None:
        """The sign-in that waits for a user, by its code as people write it. A wrong code is counted, and after
        WRONG_CODES of them no code of this user is right."""
        self._forget()
        bare = user.bare
        sign_in = self._by_code.get(_NO_CODE.sub("", text.upper()))
        if not self.admits(user):
            return None
        waits = sign_in is not None and sign_in.state is SignInState.WAITING and sign_in.target in (None, bare)
        if not waits:
            self._wrong.append((self._clock(), str(bare)))
            del self._wrong[:-MOST]  # strangers write wrong codes
            return None
        return sign_in

    def awaits(self, user: Jid) -> bool:
        """Whether a sign-in waits for this user: one that names the user, or of which the user was told."""
        bare = user.bare
        return any(
            sign_in.state is SignInState.WAITING and bare in (sign_in.target, sign_in.informed) for sign_in in self
        )

    def answer(self, text: str, user: Jid, *, accepted: bool) -> SignIn | None:
        """Notes the answer of an informed user to a code. Returns the sign-in, None if no sign-in waits for it."""
        sign_in = self.find(text, user)
        if sign_in is None or sign_in.informed != user.bare:
            return None
        sign_in.state = SignInState.CONFIRMED if accepted else SignInState.REFUSED
        sign_in.jid = user.bare
        self._on_change(sign_in)
        return sign_in

    def admits(self, user: Jid) -> bool:
        """Whether a code of this user may be right: the user has not written too many wrong ones."""
        return Counter(jid for _, jid in self._wrong)[user.bare_text] < WRONG_CODES

    def take(self, browser: str) -> SignIn | None:
        """The confirmed sign-in of a browser, which can be taken once. None if it is not confirmed."""
        sign_in = self.of_browser(browser)
        if sign_in is None or sign_in.state is not SignInState.CONFIRMED:
            return None
        sign_in.browser = ""
        self._on_change(sign_in)
        return sign_in

    def receive(self, update: SignIn) -> None:
        """Notes a sign-in that has begun or changed in another process. Its steps go forward only, because the changes
        of two processes may arrive in any order."""
        self._forget()
        sign_in = self._by_code.get(update.code)
        if sign_in is None:
            if len(self._by_code) < MOST and update.began_us > self._oldest_us:
                self._by_code[update.code] = update
            return
        sign_in.informed = update.informed or sign_in.informed
        if not update.browser:
            sign_in.browser = ""
        if sign_in.state is SignInState.WAITING:
            sign_in.state, sign_in.jid = update.state, update.jid

    @property
    def _oldest_us(self) -> int:
        return self._clock() - LIFETIME_S * US_PER_S

    def _forget(self) -> None:
        """Removes what is too old."""
        oldest_us = self._oldest_us
        for code, sign_in in list(self._by_code.items()):
            if sign_in.began_us > oldest_us:
                break
            del self._by_code[code]
        self._wrong = [wrong for wrong in self._wrong if wrong[0] > oldest_us]


def _digest(browser: str) -> str:
    """Returns the digest of a cookie, as other processes and their database see it; "" for none."""
    return hashlib.sha256(browser.encode()).hexdigest() if browser else ""
