"""The bytes of letters, and the letters that carry stanzas (docs/scaling.md, "Links")."""

from typing import Final

from smartfeeds.delivery.letters import LetterTopic

# Recipients beside the ids of processes: all others, and one of those with a link.
EVERY_PROCESS: Final = "*"
ANY_PROCESS: Final = "?"

SHARED: Final = LetterTopic("shared")  # a stanza that the sender has handled: the receiver updates its memory only
HANDED: Final = LetterTopic("handed")  # a stanza that the receiver handles
OUTGOING: Final = LetterTopic("outgoing")  # a stanza that the receiver sends to the XMPP server


def write_letter(topic: LetterTopic, body: bytes) -> bytes:
    """Returns a letter."""
    return b"%s:%s" % (topic.encode(), body)


def split_letter(data: bytes) -> tuple[LetterTopic, bytes]:
    """Returns the topic of a letter, and the body."""
    name, _, body = data.partition(b":")
    return LetterTopic(name.decode(errors="replace")), body
