"""Failures of sources in words for people: what happened, what the service does next, and what a person can do.

The reasons that are stored are for operators (`net.fetch`, `formats.refusals`, `polls`). A kind of reason has a row
here; one without a row is shown as it is.
"""

import re
from typing import Final, NamedTuple

from smartfeeds.features.polling.following import HIDDEN_REASON
from smartfeeds.features.polling.polls import UNLISTED
from smartfeeds.features.polling.source import Source, SourceState
from smartfeeds.texts import N_


class FailureWords(NamedTuple):
    """The words for a failure and for what a person can do, in English, for `Texts.say`. `is_known` is false for a
    reason without a row, whose text belongs to the words."""

    what: str
    advice: str = ""
    is_known: bool = True


_SITE: Final = N_("Look on the site for the address of its feed, and follow that.")
_WAIT: Final = N_("You need not do anything.")
_AUTHOR: Final = N_("Ask the author of the site for an address that anybody may read.")
# The first pattern that occurs in a reason decides.
_KINDS: Final = (
    # First, because the reason has the title of the page, in which any other pattern may occur.
    (r"is a web page, not a feed", N_("There is a web page, and no feed."), _SITE),
    (r"gave no usable answer", N_("The server has a fault."), _WAIT),
    (r"its address is not public", N_("The address is in a private network, and this service does not read it."), ""),
    (r"\banswered 40[13]\b", N_("The server does not let this service read the address."), _AUTHOR),
    (r"\banswered 404\b", N_("The server has nothing at this address."), _SITE),
    (r"\banswered 410\b", N_("The feed has ended: its server says that it is gone for good."), _SITE),
    (r"\banswered 429\b|asked for a pause|\bpause\b", N_("The server asks for fewer requests."), _WAIT),
    (r"\banswered 5[0-9]{2}\b", N_("The server has a fault."), _WAIT),
    (r"\banswered [0-9]{3}\b", N_("The server refuses the address."), _SITE),
    (r"(did|does) not answer", N_("The server does not answer."), _WAIT),
    (
        r"over https",
        N_("The server has no secure connection."),
        N_("If the address works in a browser, write it with http:// at its beginning."),
    ),
    (r"has a certificate", N_("The certificate of the server is not valid."), _WAIT),
    (
        r"cannot be reached",
        N_("The server cannot be reached."),
        N_("Check the name of the server. It may also be switched off for a while."),
    ),
    (r"\bredirect", N_("The address leads to another one again and again, and to no feed."), _SITE),
    (r"took more than [0-9]+ s\b", N_("Reading the document takes too long."), ""),
    (r"ended early|is not whole|document is empty", N_("The document arrived in part only."), _WAIT),
    (r"larger than|more than [0-9]+", N_("The document is too large to be read."), ""),
)
# In place of a reason that readers may not see (`following.HIDDEN_REASON`).
_HIDDEN: Final = FailureWords(N_("It cannot be read at the moment."), N_("Its owner can see why."))
_PATTERNS: Final = tuple((re.compile(pattern), FailureWords(what, advice)) for pattern, what, advice in _KINDS)
_UNKNOWN: Final = FailureWords(N_("The document cannot be read as a feed."), _SITE, is_known=False)
_PAUSED: Final = FailureWords(N_("Somebody has paused it."), N_("Its owner can resume it."))
_LEFT_LIST: Final = FailureWords(N_("The list that it came from does not name it any more."), "")

# What happens next, by state. The time of the next request follows the first two.
NEXT_TRY: Final = N_("The service tries again:")
NEXT_RARE: Final = N_("It has failed for so long that the service tries once a week only:")
NEXT_NONE: Final = N_("The service does not try again by itself.")


def words_of_reason(reason: str) -> FailureWords:
    """Returns the words for the reason of a failure."""
    if reason == HIDDEN_REASON:
        return _HIDDEN
    return next((words for pattern, words in _PATTERNS if pattern.search(reason)), _UNKNOWN)


def words_of_failure(source: Source) -> FailureWords | None:
    """Returns the words for a source that fails, None for one that works."""
    if source.state is SourceState.POLLED:
        return None
    if source.state is SourceState.PAUSED:
        return _LEFT_LIST if source.reason == UNLISTED else _PAUSED
    return words_of_reason(source.reason)


def next_step(source: Source) -> str:
    """Returns the words about the next request of a source that fails."""
    if source.due_us is None:
        return NEXT_NONE
    return NEXT_RARE if source.state is SourceState.STOPPED else NEXT_TRY
