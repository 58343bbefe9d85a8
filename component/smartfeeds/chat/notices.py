"""Messages to people about what waits for them.

The feature that answers chat adds a `ChatNotices` to the parts of the service. Other features look for it there, so
neither imports the other.
"""

from collections.abc import Callable
from dataclasses import dataclass

from smartfeeds.chat.commands import ChatReply
from smartfeeds.core.jid import Jid
from smartfeeds.texts import Texts

# Returns a message in a language.
WriteNotice = Callable[[Texts], ChatReply]


@dataclass(frozen=True, slots=True)
class ChatNotices:
    """The way to people who use chat. `send` sends a message to those of some people who do, outside of their quiet
    hours and at most so many to each. It returns at once."""

    send: Callable[[tuple[Jid, ...], WriteNotice], object]
