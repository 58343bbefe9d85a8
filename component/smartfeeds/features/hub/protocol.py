"""The protocol of the hub without its I/O: requests and checks of intent (WebSub; PubSubHubbub Core 0.3).

A request with `hub.verify` is in the dialect of PubSubHubbub 0.3, any other one in that of WebSub. The dialect decides
the status of the response and the method of the signature (A-21).
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from smartfeeds.json_form import JsonForm

MAX_BODY_BYTES: Final = 16_384
MAX_CALLBACK_BYTES: Final = 2_048
MAX_SECRET_BYTES: Final = 199  # WebSub section 5.1: less than 200
MAX_TOKEN_BYTES: Final = 1_024
_MAX_FIELDS: Final = 200
_MAX_LEASE_DIGITS: Final = 18
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
_ONCE: Final = (
    "hub.mode",
    "hub.callback",
    "hub.topic",
    "hub.secret",
    "hub.lease_seconds",
    "hub.verify_token",
)


class HubRequestError(ValueError):
    """A request cannot be served. The text names the parameter and says what to do."""


class HubDialect(Enum):
    """The protocol that a subscriber speaks."""

    WEBSUB = "websub"
    PUBSUBHUBBUB = "0.3"

    @property
    def method(self) -> str:
        """The method of signatures: PubSubHubbub 0.3 knows sha1 only (WD-3)."""
        return "sha1" if self is HubDialect.PUBSUBHUBBUB else "sha256"


class Mode(Enum):
    """The kind of a verification request to a subscriber."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class HubRequest:
    """A request to subscribe or to unsubscribe.

    `at_once`: the caller waits for the check (`hub.verify=sync`). `lease_s` is None if the caller wishes none,
    `verify_token` if it gave none.
    """

    mode: Mode
    callback: str = field(repr=False)
    topic: str
    dialect: HubDialect = HubDialect.WEBSUB
    at_once: bool = False
    secret: str = field(default="", repr=False)
    lease_s: int | None = None
    verify_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HubTerms:
    """The terms of a subscription. `suffix` and `query` are those of its topic."""

    suffix: str
    query: str
    dialect: HubDialect = HubDialect.WEBSUB
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class HubQuestion:
    """A check of intent, or the news that a subscription was ended.

    With `terms`, `reader` and `token_id` a subscription becomes active. `number` distinguishes this question from
    others of the same subscription. `attempts` counts those that failed. `reason` is for a denial.
    """

    mode: Mode
    number: str = ""
    terms: HubTerms | None = None
    lease_s: int = 0
    verify_token: str | None = field(default=None, repr=False)
    reader: str = ""
    token_id: str = ""
    attempts: int = 0
    reason: str = ""

    def failed(self) -> "HubQuestion":
        """The question after one more failed attempt."""
        return replace(self, attempts=self.attempts + 1)


HUB_TERMS: Final = JsonForm(HubTerms)
HUB_QUESTION: Final = JsonForm(HubQuestion)


def read_request(body: bytes) -> HubRequest:
    """Returns the request in the body of a form. Raises HubRequestError."""
    fields = _read_fields(body)
    mode = fields.single("hub.mode")
    if mode == "publish":
        raise HubRequestError(
            'hub.mode is "publish": this hub serves only the feeds of its own server, which report their changes to it '
            "themselves"
        )
    if mode not in (Mode.SUBSCRIBE.value, Mode.UNSUBSCRIBE.value):
        raise HubRequestError("hub.mode must be subscribe or unsubscribe")
    callback, topic = fields.single("hub.callback"), fields.single("hub.topic")
    _check_callback(callback)
    secret = fields.values.get("hub.secret", "")
    if len(secret.encode()) > MAX_SECRET_BYTES:
        raise HubRequestError(f"hub.secret is longer than {MAX_SECRET_BYTES} bytes")
    token = fields.values.get("hub.verify_token")
    if token is not None and len(token.encode()) > MAX_TOKEN_BYTES:
        raise HubRequestError(f"hub.verify_token is longer than {MAX_TOKEN_BYTES} bytes")
    words = [word.strip() for text in fields.verify for word in text.split(",")]
    known = [word for word in words if word in ("sync", "async")]
    if fields.verify and not known:
        raise HubRequestError("hub.verify must have one of the words sync and async")
    return HubRequest(
        Mode(mode),
        callback,
        topic,
        HubDialect.PUBSUBHUBBUB if known else HubDialect.WEBSUB,
        known[:1] == ["sync"],
        secret,
        _lease_s(fields.values.get("hub.lease_seconds", "")),
        token,
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """The parameters of a request that occur once, and the values of `hub.verify`, which may occur several times."""

    values: dict[str, str]
    verify: list[str]

    def single(self, name: str) -> str:
        value = self.values.get(name)
        if not value:
            raise HubRequestError(f"{name} is {'missing' if value is None else 'empty'}")
        return value


def _read_fields(body: bytes) -> _Fields:
    try:
        text = body.decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise HubRequestError("the body is not a form in UTF-8, or has too many parameters") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in _ONCE:
            if name in values:
                raise HubRequestError(f"{name} occurs twice")
            values[name] = value
    return _Fields(values, [value for name, value in pairs if name == "hub.verify"])


def _check_callback(text: str) -> None:
    """Raises HubRequestError for an address that no delivery may go to (WS-010, WS-011)."""
    if len(text.encode()) > MAX_CALLBACK_BYTES:
        raise HubRequestError(f"hub.callback is longer than {MAX_CALLBACK_BYTES} bytes")
    if not _PRINTABLE.fullmatch(text):
        raise HubRequestError("hub.callback has characters that addresses must escape with a percent sign")
    if "#" in text:
        raise HubRequestError("hub.callback has a fragment; leave out the part after #")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise HubRequestError("hub.callback is not a web address") from None
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise HubRequestError("hub.callback must begin with http:// or https:// and a host")
    if "@" in parts.netloc:
        raise HubRequestError("hub.callback must have neither user nor password")


def _lease_s(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()) or not text.strip("0"):
        raise HubRequestError("hub.lease_seconds must be a positive whole number")
    return int(text[:_MAX_LEASE_DIGITS])


def host_of_callback(url: str) -> str:
    """Returns the host of a callback in lower case."""
    return urlsplit(url).hostname or ""


def question_url(callback: str, topic: str, question: HubQuestion, challenge: str) -> str:
    """Returns the address of a check of intent or of a denial: the callback with its own query, and more parameters.

    The bytes of the callback stay as they are, and no parameter replaces one that the callback has (WebSub section
    5.3.1).
    """
    pairs = [("hub.mode", question.mode.value), ("hub.topic", topic)]
    if question.mode is Mode.DENIED:
        pairs.append(("hub.reason", question.reason))
    else:
        pairs.append(("hub.challenge", challenge))
    if question.mode is Mode.SUBSCRIBE:
        pairs.append(("hub.lease_seconds", str(question.lease_s)))
    if question.verify_token is not None:
        pairs.append(("hub.verify_token", question.verify_token))
    _, mark, query = callback.partition("?")
    joint = "?" if not mark else "&" if query else ""
    return callback + joint + "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)
