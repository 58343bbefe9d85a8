"""Replies of guests: people without an account, who write in the frame of a feed.

A reply waits until an owner or publisher of the feed approves it. The token of a form proves that this service made the
form, for this feed and this target, some seconds ago at least. The id of a reply is made of its nonce and of what the
guest wrote, so a form that is sent again gives no second reply, and one with other words (after *Back*) loses none.
"""

import hmac
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from smartfeeds.core.ip_addresses import network_of
from smartfeeds.core.limits import Rate, TokenBuckets
from smartfeeds.core.text import cut, is_xml_text
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats import atom
from smartfeeds.formats.entry import ReplyReference
from smartfeeds.formats.entry_form import WrittenFields, new_entry
from smartfeeds.formats.xml import Element, new_element
from smartfeeds.texts import N_

MAX_NAME, MAX_TEXT = 60, 5_000  # characters
MAX_TARGET_BYTES = 2_048
QUOTED_CHARACTERS = 1_000  # of a reply in a message or a form; the page has all of it
MOST_WAITING = 200  # replies of a feed
SILENCE_S = 86_400  # those who decide hear of a queue once in this time
WAITING_DAYS = 30
# Nobody reads, writes and sends a form in less time. A page may stay open for a day.
LEAST_AGE_S, MOST_AGE_S = 3, 86_400
# A decided reply stays longer than its form is valid: it would be a new reply if the form were sent again.
DECIDED_S = 2 * MOST_AGE_S
# Of one network address: five replies at once, then one in a minute.
RATE: Final = Rate(per_s=1 / 60, burst=5)
_TOKEN: Final = re.compile(r"([0-9]{1,12})-([0-9a-f]{24})-([0-9a-f]{32})")
_CREATED: Final = re.compile(r"[0-9]{1,18}")
_JOINERS: Final = frozenset("\u200c\u200d")  # letters of Persian and of Indian scripts
# They turn the direction of the text around them: a reader would see another text than the one that was approved.
_TURNS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufff9-\ufffb]")
_LINE_END: Final = re.compile(r"\r\n?")
_WEB: Final = re.compile(r"https?://[^\s/?#]+\S*", re.IGNORECASE)
_TOO_OLD = N_("The form is too old. Send it again.")


class QueuePlace(NamedTuple):
    """The place of a reply among those that wait."""

    created_us: int
    reply_id: str

    def __str__(self) -> str:
        return f"{self.created_us}-{self.reply_id}"


def parse_place(text: str) -> QueuePlace:
    """Reads the text of a place. Raises FeedError(BAD_REQUEST)."""
    created, dash, reply_id = text.partition("-")
    if not dash or not _CREATED.fullmatch(created):
        raise FeedError(Condition.BAD_REQUEST, N_("the form has no known action; load the page again"))
    return QueuePlace(int(created), reply_id)


class ReplyState(Enum):
    """The states of a reply."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class GuestReply:
    """A reply. `target` is the id or the address of what it answers, "" if it is a comment on no entry. A reply that is
    decided has no texts."""

    reply_id: str
    node_no: int
    state: ReplyState
    name: str
    text: str
    target: str
    created_us: int
    expires_us: int

    @property
    def place(self) -> QueuePlace:
        """Its place in the list."""
        return QueuePlace(self.created_us, self.reply_id)

    @property
    def item_id(self) -> str:
        """The id of its item. It is always the same, so that a reply cannot become two items."""
        return f"guest-{self.reply_id}"


def is_news(times_us: Iterable[int], now_us: int) -> bool:
    """Whether those who decide hear of a new reply. `times_us` are those of the replies that wait, oldest first.

    They hear of the first one, and then of the first one after `SILENCE_S`. Which of them these were follows from the
    times, so nothing is stored about it, and guests alone cause one message a day.
    """
    told_us: int | None = None
    for time_us in times_us:
        if told_us is None or time_us - told_us >= SILENCE_S * US_PER_S:
            told_us = time_us
    return told_us is None or now_us - told_us >= SILENCE_S * US_PER_S


def clean_name(text: str) -> str:
    """Returns a name on one line, without characters that are invisible or turn the direction of text. Raises
    FeedError(BAD_REQUEST)."""
    letters = []
    for letter in unicodedata.normalize("NFC", text[: 4 * MAX_NAME]):
        category = unicodedata.category(letter)
        if category.startswith("Z") or letter in "\t\r\n":
            letters.append(" ")
        elif category[0] != "C" or letter in _JOINERS:
            letters.append(letter)
    name = " ".join("".join(letters).split())
    if not any(letter.isalnum() for letter in name):
        raise FeedError(Condition.BAD_REQUEST, N_("Write your name."))
    if len(name) > MAX_NAME or len(text) > 4 * MAX_NAME:
        raise FeedError(Condition.BAD_REQUEST, f"The name is too long: at most {MAX_NAME} characters.")
    # The address of somebody else would look like a proof.
    if "@" in unicodedata.normalize("NFKC", name):
        raise FeedError(Condition.BAD_REQUEST, N_("Write a name, not an address."))
    return name


def clean_text(text: str) -> str:
    """Returns a plain text without characters that turn the direction of text. Raises FeedError(BAD_REQUEST)."""
    if len(text) > MAX_TEXT:
        raise FeedError(Condition.BAD_REQUEST, f"The text is too long: at most {MAX_TEXT} characters.")
    text = _CONTROLS.sub("", _TURNS.sub("", _LINE_END.sub("\n", text))).strip()
    if not text or not is_xml_text(text):
        raise FeedError(Condition.BAD_REQUEST, N_("Write a text."))
    return text


def reference_of(reply: GuestReply) -> ReplyReference | None:
    """Returns what a reply answers, None if it is a comment on no entry."""
    address = reply.target if _WEB.fullmatch(reply.target) else ""
    return ReplyReference(reply.target, address) if reply.target else None


def quotation_of(reply: GuestReply, characters: int = QUOTED_CHARACTERS) -> str:
    """Returns name and text of a reply for chat: one line behind a mark, shortened to a length. So it cannot look like
    words of the service, like a command, or like a second reply."""
    return f"> {cut(' '.join(f'{reply.name}: {reply.text}'.split()), characters)}"


def entry_of(reply: GuestReply, answered: ReplyReference | None = None) -> Element:
    """Returns the Atom entry of a reply. `answered` is the entry here that it answers, None for one elsewhere. Its
    author has a name alone, which says that it is a guest. Guests can type the name of anybody, but not without this
    word."""
    entry = new_entry(WrittenFields(text=reply.text), "", answered or reference_of(reply))
    person = new_element(atom.NAME, {})
    person.text = f"{reply.name} (guest)"
    author = new_element(atom.AUTHOR, {})
    author.append(person)
    entry.append(author)
    return entry


@dataclass(frozen=True, slots=True)
class GuestForms:
    """Makes and checks the tokens of forms, with a key that all processes of the service have. `now_us` returns
    microseconds."""

    key: bytes = field(repr=False)
    now_us: Callable[[], int]

    def token(self, node_no: int, target: str) -> str:
        """Returns the token of a new form."""
        made_s, nonce = self.now_us() // US_PER_S, secrets.token_hex(12)
        return f"{made_s}-{nonce}-{self._signature(node_no, target, made_s, nonce)}"

    def reply_id(self, token: str, node_no: int, target: str, name: str, text: str) -> str:
        """Returns the id of the reply of a form with these texts. Raises FeedError(BAD_REQUEST) for a token that is not
        of this form, or too young or too old."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise FeedError(Condition.BAD_REQUEST, _TOO_OLD)
        made_s, nonce = int(match[1]), match[2]
        if not hmac.compare_digest(match[3], self._signature(node_no, target, made_s, nonce)):
            raise FeedError(Condition.BAD_REQUEST, _TOO_OLD)
        age_s = self.now_us() // US_PER_S - made_s
        if age_s < LEAST_AGE_S:
            raise FeedError(Condition.BAD_REQUEST, N_("That was very fast. Wait a few seconds, and send it again."))
        if age_s > MOST_AGE_S:
            raise FeedError(Condition.BAD_REQUEST, _TOO_OLD)
        # A name has no line end, so other texts give another id. The key hides what somebody wrote.
        return self._digest(f"reply {nonce} {name}\n{text}")[:24]

    def _signature(self, node_no: int, target: str, made_s: int, nonce: str) -> str:
        return self._digest(f"{node_no} {made_s} {nonce} {target}")[:32]

    def _digest(self, text: str) -> str:
        return hmac.digest(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hex()


class GuestLimits:
    """The rates of network addresses. They are in memory only."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._buckets = TokenBuckets(RATE, clock=lambda: now_us() / US_PER_S)

    def check(self, address: str) -> None:
        """Counts a reply. Raises FeedError(BUSY) if the address has sent too many."""
        network = network_of(address)
        if not self._buckets.has(network):
            raise FeedError(Condition.BUSY, N_("Too many replies came from your network. Wait a minute."))
        self._buckets.take(network)
