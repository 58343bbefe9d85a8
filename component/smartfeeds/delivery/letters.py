"""Letters: what one process of a domain tells the others, beside changes of nodes (docs/scaling.md, "Links").

A letter is a topic and a body. A process ignores topics that it does not know, because a newer version may send them
during a restart of one process after the other.
"""

from collections.abc import Callable
from typing import NewType

LetterTopic = NewType("LetterTopic", str)


class Letters:
    """The letters of a process that is alone: there is nobody to read them."""

    def has_others(self) -> bool:
        """Returns whether another process may have a link, too: the server may send to it what is for this one."""
        return False

    def read(self, topic: LetterTopic, reader: Callable[[bytes], object]) -> None:
        """Passes the bodies of a topic to this reader."""

    def greet(self, work: Callable[[], object]) -> None:
        """Calls `work` when another process has started, which lacks what was shared before."""

    def share(self, topic: LetterTopic, body: bytes) -> None:
        """Sends a letter to all other processes."""
