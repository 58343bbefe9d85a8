"""The phone of the demonstration: what it shows and sends, with a client that only notes."""

from typing import Any
from xml.etree.ElementTree import Element

from smartfeeds.features.demo.phone import Phone, shown


class Message:
    """A message of slixmpp that is noted when it is sent."""

    def __init__(self, sent: list["Message"], mto: str, mbody: str, mtype: str) -> None:
        self.xml = Element("message")
        self.fields = (mto, mbody, mtype)
        self._sent = sent

    def send(self) -> None:
        self._sent.append(self)


class Client:
    """The link of a person, and its client."""

    jid = "bob@localhost"

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.link = self
        self.client = self

    def make_message(self, **fields: str) -> Message:
        return Message(self.sent, **fields)


def phone_and(client: Client) -> tuple[Phone, list[str]]:
    texts: list[str] = []
    person: Any = client
    return Phone(person, "feeds.localhost", texts.append), texts


def test_message_is_shown_with_its_lines_below_each_other() -> None:
    assert shown("feeds.localhost/bot", "One\nTwo") == "feeds.localhost: One\n                 Two"


def test_lines_are_sent_and_messages_without_text_are_not_shown() -> None:
    client = Client()
    phone, texts = phone_and(client)
    phone.on_message({"from": "feeds.localhost", "body": "", "id": "1"})
    for line in ("help", "  ", "re", "re nobody has written"):
        phone.send(line)

    assert texts == []
    assert [message.fields for message in client.sent] == [
        ("feeds.localhost", "help", "chat"),
        ("feeds.localhost", "re", "chat"),
        ("feeds.localhost", "re nobody has written", "chat"),
    ]


def test_line_with_re_answers_the_last_message() -> None:
    """[XEP-0461]"""
    client = Client()
    phone, texts = phone_and(client)
    phone.on_message({"from": "feeds.localhost/bot", "body": "Storm warning", "id": "m7"})
    phone.send("re Thank you")
    (message,) = client.sent
    (reply,) = message.xml

    assert texts == ["feeds.localhost: Storm warning"]
    assert message.fields == ("feeds.localhost", "Thank you", "chat")
    assert (reply.tag, reply.attrib) == ("{urn:xmpp:reply:0}reply", {"to": "feeds.localhost/bot", "id": "m7"})
