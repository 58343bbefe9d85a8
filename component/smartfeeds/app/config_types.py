"""The types of settings: how texts such as addresses, networks and paths are checked and normalised. The base of
sections is here, too."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from ipaddress import ip_interface
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from smartfeeds.core.jid import Jid, parse_jid
from smartfeeds.core.stores import parse_store
from smartfeeds.core.web_address import read_address


def _jid(kind: str, fits: Callable[[Jid], bool]) -> AfterValidator:
    def check(text: str) -> str:
        jid = parse_jid(text)
        if jid is None or jid.resource or not fits(jid):
            raise ValueError(f'must be {kind}, not "{text}"')
        return str(jid)

    return AfterValidator(check)


def _creator(text: str) -> str:
    jid = parse_jid(text)
    if text == "*":
        return text
    if jid is None or jid.resource:
        raise ValueError(f'must be a bare JID, a domain or "*", not "{text}"')
    return str(jid)


def _store_url(text: str) -> str:
    parse_store(text)
    return text


def _listen(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if text and not (host and colon and port.isdecimal() and int(port) < 65536):
        raise ValueError(f'must be HOST:PORT, or empty for no HTTP, not "{text}"')
    return text


def _base_url(text: str) -> str:
    text = text.rstrip("/")
    if text and not re.fullmatch(r"https?://[^/?#\s\"<>@]+(?:/[A-Za-z0-9._~-]+)*", text):
        raise ValueError(f'must be scheme, host and perhaps a path, such as "https://example.org/feeds", not "{text}"')
    return text


def _network(text: str) -> str:
    try:
        interface = ip_interface(text)
    except ValueError:
        raise ValueError(f'must be an address or a network such as "10.0.0.0/8", not "{text}"') from None
    address, network = interface.ip, interface.network
    if address != network.network_address:
        raise ValueError(f'"{text}" is no network: write "{network}", or "{address}" for this address alone')
    return str(network)


def _address(pattern: str, examples: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text) or not text.isprintable():
            raise ValueError(f'must be an address such as {examples}, not "{text}"')
        return text

    return AfterValidator(check)


def _web_address(text: str) -> str:
    address = read_address(text)
    if not address:
        raise ValueError(f'must be an address such as "https://example.org/feed.ess", not "{text}"')
    return address


# The folder of the configuration file while settings are read; relative paths are relative to it. It is a context
# variable, because a constructor of pydantic passes no context to validators.
FOLDER: ContextVar[Path] = ContextVar("folder", default=Path())


Domain = Annotated[str, _jid('a domain such as "feeds.example.org"', lambda jid: not jid.local)]
BareJid = Annotated[str, _jid('a bare JID such as "alice@example.org"', lambda jid: bool(jid.local))]
StoreUrl = Annotated[str, AfterValidator(_store_url)]
ListenAddress = Annotated[str, AfterValidator(_listen)]
Creator = Annotated[str, AfterValidator(_creator)]
Port = Annotated[int, Field(ge=1, le=65535)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
NetworkText = Annotated[str, AfterValidator(_network)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
ContactAddress = Annotated[
    str, _address(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>]+", '"mailto:abuse@example.org" or "xmpp:a@example.org"')
]
FilePath = Annotated[Path, AfterValidator(lambda path: FOLDER.get() / path)]
Seconds = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


_MOST = 2**63 - 1  # the greatest number of a column of the database
_MOST_SECONDS = 1_000_000_000  # 30 years: a point in time that is so far away is one of a database and of a calendar


class SettingsSection(BaseModel):
    """One table of the configuration file. Values are read-only."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # the input may be the secret
    )

    @field_validator("*")
    @classmethod
    def _is_bounded(cls, value: object) -> object:
        if isinstance(value, float) and value > _MOST_SECONDS:
            raise ValueError(f"must be at most {_MOST_SECONDS}")
        if isinstance(value, int) and value > _MOST:
            raise ValueError(f"must be at most {_MOST}")
        return value
