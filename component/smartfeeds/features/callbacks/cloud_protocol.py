"""rssCloud without its I/O: the parameters of registrations and the addresses of callbacks (RSS-019 to RSS-028).

A cloud notifies the workstations that have registered a callback for the feeds of the cloud. A registration comes by
XML-RPC, SOAP or as a form, and names one of these as the protocol of the notifications.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import parse_qsl, quote

LIFE_S: Final = 90_000  # 25 hours (RSS-026, A-135)
MAX_BODY_BYTES: Final = 65_536
MAX_URLS: Final = 100
MAX_PORT: Final = 65_535
MAX_PATH_BYTES: Final = 1_024
# The last parts of the names under which clouds have offered registration (RD-1).
REGISTER_NAMES: Final = frozenset({"rssPleaseNotify", "pleaseNotify", "requestNotification"})
REGISTER_PROCEDURE: Final = "smartfeeds.rssPleaseNotify"
HELLO: Final = "hello"
_MAX_FIELDS: Final = 300
_PROCEDURE: Final = re.compile(r"[A-Za-z0-9_.:/]{1,255}")
_PATH: Final = re.compile(r"/(?!/)[^\x00-\x20\x7f#\\]*|/")
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9](?:[A-Za-z0-9.\-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]")
_URL_FIELD: Final = re.compile(r"url([0-9]{1,9})")
_DIGITS: Final = re.compile(r"[0-9]{1,9}")
_HTTPS_PORT: Final = 443


class CloudRequestError(ValueError):
    """A registration is understood and refused. The text is for people and follows "Not registered: "."""


class CloudProtocol(Enum):
    """The protocol of notifications; the values are those of the element `cloud` (RSS-017)."""

    HTTP_POST = "http-post"
    XML_RPC = "xml-rpc"
    SOAP = "soap"


# Not one of the three words of RSS 0.92: living clouds use it for forms over https (RD-14).
HTTPS_POST: Final = "https-post"


@dataclass(frozen=True, slots=True)
class CloudCallback:
    """The address to notify, as an http or https URL, and how. `procedure` is empty for forms that name none."""

    url: str
    protocol: CloudProtocol
    procedure: str = ""

    @property
    def text(self) -> str:
        """The callback as one text. No path has a fragment, so the fragment is free for protocol and procedure."""
        return f"{self.url}#{self.protocol.value}:{self.procedure}"


def read_callback(text: str) -> CloudCallback:
    """Returns the callback of a text that `CloudCallback.text` has made."""
    url, _, rest = text.partition("#")
    protocol, _, procedure = rest.partition(":")
    return CloudCallback(url, CloudProtocol(protocol), procedure)


@dataclass(frozen=True, slots=True)
class CloudRequest:
    """A registration (RSS-020). `urls` are the feeds as the workstation spells them.

    `domain` is the host that the workstation names as its own, "" for the address that the request comes from. `tls`:
    the callback is called by https.
    """

    procedure: str
    port: int
    path: str
    protocol: CloudProtocol
    urls: tuple[str, ...]
    domain: str = ""
    tls: bool = False

    def callback(self, host: str) -> CloudCallback:
        """Returns the callback on a host: a name, an IPv4 address, or an IPv6 address with or without brackets."""
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        port = "" if self.port == (_HTTPS_PORT if self.tls else 80) else f":{self.port}"
        url = f"http{'s' if self.tls else ''}://{host.lower()}{port}{self.path}"
        return CloudCallback(url, self.protocol, self.procedure)


def check_request(
    procedure: str, port: object, path: str, protocol: str, urls: Sequence[str], domain: str = ""
) -> CloudRequest:
    """Returns the registration with these parameters. Raises CloudRequestError."""
    number = int(port) if isinstance(port, str) and _DIGITS.fullmatch(port) else port
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_PORT:
        raise CloudRequestError(f"the port must be a number from 1 to {MAX_PORT}.")
    path = path if path.startswith("/") else f"/{path}"
    if len(path.encode(errors="replace")) > MAX_PATH_BYTES:
        raise CloudRequestError(f"the path is longer than {MAX_PATH_BYTES} bytes.")
    if _PATH.fullmatch(path) is None:
        raise CloudRequestError(
            "the path must begin with one slash, and have neither spaces, control characters, backslashes nor #."
        )
    known = [word.value for word in CloudProtocol]
    tls = protocol == HTTPS_POST or number == _HTTPS_PORT
    if protocol not in (*known, HTTPS_POST):
        raise CloudRequestError(f"the protocol must be one of {', '.join((*known, HTTPS_POST))}.")
    word = CloudProtocol.HTTP_POST if protocol == HTTPS_POST else CloudProtocol(protocol)
    if word is CloudProtocol.HTTP_POST:
        procedure = ""  # a form calls none, so it does not distinguish callbacks
    elif _PROCEDURE.fullmatch(procedure) is None:
        raise CloudRequestError(
            f"{word.value} needs the name of a procedure: 1 to 255 letters, digits and the characters _ . : /"
        )
    if not 1 <= len(urls) <= MAX_URLS:
        raise CloudRequestError(f"1 to {MAX_URLS} addresses of feeds are wanted, {len(urls)} came.")
    if domain and _HOST.fullmatch(domain) is None:
        raise CloudRequestError("the domain must be the name of a host or an IP address, without a port.")
    return CloudRequest(procedure, number, _ascii(path), word, tuple(dict.fromkeys(urls)), domain, tls)


def _ascii(path: str) -> str:
    """The path with escapes for what no URL can have; existing escapes stay."""
    return quote(path, safe="/%?&=:@!$'()*+,;~-._[]")


def read_form(body: bytes) -> CloudRequest:
    """Returns the registration in the body of a form (A-129). Unknown fields are ignored.

    Raises CloudRequestError; ValueError for a body that is no form.
    """
    pairs = parse_qsl(
        body.decode(), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=_MAX_FIELDS
    )
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields.setdefault(name, value)
    missing = [name for name in ("port", "path", "protocol") if name not in fields]
    if missing:
        raise CloudRequestError(f"the field {missing[0]} is missing.")
    numbered = sorted((int(match[1]), fields[name]) for name in fields if (match := _URL_FIELD.fullmatch(name)))
    urls = [fields["url"]] if "url" in fields else []
    return check_request(
        fields.get("notifyProcedure", ""),
        fields["port"].strip(),
        fields["path"],
        fields["protocol"],
        [*urls, *(url for _, url in numbered)],
        fields.get("domain", "").strip(),
    )


def challenge_url(callback: CloudCallback, feed_url: str, challenge: str) -> str:
    """Returns the address that must answer with the challenge. A path with a query of its own gets "&" (RC-029)."""
    mark = "&" if "?" in callback.url else "?"
    return f"{callback.url}{mark}url={quote(feed_url, safe='')}&challenge={quote(challenge, safe='')}"


@dataclass(frozen=True, slots=True)
class CloudTerms:
    """The terms of a registration: suffix and query of the topic, and its URL as the workstation registered it."""

    suffix: str
    query: str
    url: str


def dump_terms(terms: CloudTerms) -> str:
    """Returns the terms as JSON."""
    return json.dumps({"suffix": terms.suffix, "query": terms.query, "url": terms.url})


def load_terms(text: str) -> CloudTerms:
    """Returns the terms of a text that `dump_terms` has made."""
    return CloudTerms(**json.loads(text))
