"""`smartfeeds demo phone`: the chat client of the reader, in a terminal.

It prints the messages that arrive, and sends the lines that are typed to the service.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final, Protocol
from xml.etree.ElementTree import Element

from smartfeeds.features.demo.person import DemoUser

ANSWER: Final = "re"  # the first word of a line that answers the last message
_REPLY: Final = "urn:xmpp:reply:0"
_CHUNK_BYTES: Final = 4_096

Show = Callable[[str], None]


class PhoneMessage(Protocol):
    """A message of slixmpp. Its types are not imported here: only `client` knows the library."""

    def __getitem__(self, name: str) -> object: ...


class Phone:
    """The client of a person who chats with the service. `show` prints a text."""

    def __init__(self, person: DemoUser, service: str, show: Show) -> None:
        self._person = person
        self._service = service
        self._show = show
        self._client = person.link.client
        self._last = ("", "")  # sender and id of the message that arrived last

    def on_message(self, message: PhoneMessage) -> None:
        """Prints a message."""
        if body := str(message["body"]):
            self._last = str(message["from"]), str(message["id"])
            self._show(shown(self._last[0], body))

    def send(self, line: str) -> None:
        """Sends a line to the service. With `re` in front it answers the last message (XEP-0461)."""
        word, _, rest = line.strip().partition(" ")
        sender, message_id = self._last
        is_answer = word == ANSWER and bool(rest and message_id)
        if text := rest if is_answer else line.strip():
            message = self._client.make_message(mto=self._service, mbody=text, mtype="chat")
            if is_answer:
                message.xml.append(Element(f"{{{_REPLY}}}reply", {"to": sender, "id": message_id}))
            message.send()

    async def chat(self) -> None:
        """Logs in, and chats until Ctrl-C or SIGTERM. Raises LinkError, LoginError."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        self._client.add_event_handler("message", self.on_message)
        await self._person.login()
        try:
            self._show(
                f"{self._person.jid} is online, and messages appear here. Write to {self._service}, such as: help. "
                f"To answer the last message: {ANSWER} TEXT. Ctrl-C ends."
            )

            def send(line: str) -> None:
                loop.call_soon_threadsafe(self.send, line)

            threading.Thread(target=_read_lines, args=(send,), daemon=True).start()
            await stop.wait()
        finally:
            await self._person.logout()


def shown(sender: str, body: str) -> str:
    """Returns a message as it is printed: the sender, and the lines below each other."""
    name = sender.partition("/")[0]
    return f"{name}: " + body.replace("\n", f"\n{' ' * (len(name) + 2)}")


def _read_lines(send: Callable[[str], object]) -> None:
    """Passes the lines of standard input on until its end.

    Not with `sys.stdin`: a thread that waits in it has its lock, and Python cannot end then.
    """
    text = b""
    while data := os.read(sys.stdin.fileno(), _CHUNK_BYTES):
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            send(line.decode("utf-8", "replace"))
