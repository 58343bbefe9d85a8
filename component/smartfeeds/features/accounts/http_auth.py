"""Requests to confirm a sign-in over HTTP, and their answers (XEP-0070)."""

from dataclasses import dataclass

from smartfeeds.core.text import attribute, escape
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.elements import Element

CONFIRM = ns.tag(ns.HTTP_AUTH, "confirm")
_METHOD = "POST"
_MOST_CHARACTERS = 64  # of a code that is looked up


@dataclass(frozen=True, slots=True)
class SignInAnswer:
    """The answer of a user: the transaction id, and whether the user accepts."""

    code: str
    accepted: bool


def encode_confirm(sender: str, to: str, code: str, url: str, text: str) -> bytes:
    """Returns the request to a bare address, with a text for clients that do not know XEP-0070 (section 4.5)."""
    confirm = f"<confirm xmlns='{ns.HTTP_AUTH}' id='{attribute(code)}' method='{_METHOD}' url='{attribute(url)}'/>"
    return (
        f"<message from='{attribute(sender)}' to='{attribute(to)}' type='normal' id='sign-in-{attribute(code)}'>"
        f"<thread>sign-in-{attribute(code)}</thread><body>{escape(text)}</body>{confirm}</message>"
    ).encode()


def read_confirmation(message: Element) -> SignInAnswer | None:
    """Returns the answer in a message. A message of type error refuses (XEP-0070 section 4.6)."""
    confirm = message.find(CONFIRM)
    if confirm is None:
        return None
    code = (confirm.get("id") or "")[:_MOST_CHARACTERS]
    return SignInAnswer(code, message.get("type") != "error")
