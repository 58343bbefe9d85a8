"""Letters: what one process of a domain tells the others, beside changes of nodes (docs/scaling.md, "Links").

A letter is a topic and a body. A process ignores topics that it does not know, because a newer version may send them
during a restart of one process after the other.
"""

from enum import StrEnum
from typing import Final

# Recipients beside the ids of processes: all others, and one of those with a link.
EVERY_PROCESS: Final = "*"
ANY_PROCESS: Final = "?"


class LetterTopic(StrEnum):
    """What a letter is about."""

    SHARED = "shared"  # a stanza that the sender has handled: the receiver updates its memory only
    HANDED = "handed"  # a stanza that the receiver handles
    OUTGOING = "outgoing"  # a stanza that the receiver sends to the XMPP server
    SIGN_INS = "sign-ins"
    CONFIRMATION = "confirmation"  # of a sign-in that the sender does not know
    ROOM = "room"
    ATTEMPT = "attempt"  # of a delivery, to be made now


_TOPICS: Final = {topic.value.encode(): topic for topic in LetterTopic}


def write_letter(topic: LetterTopic, body: bytes) -> bytes:
    """Returns a letter."""
    return b"%s:%s" % (topic.value.encode(), body)


def split_letter(data: bytes) -> tuple[LetterTopic | None, bytes]:
    """Returns the topic of a letter, None if this version does not know it, and the body."""
    name, _, body = data.partition(b":")
    return _TOPICS.get(name), body
