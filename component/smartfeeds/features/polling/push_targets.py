"""What announces the changes of a feed of another server: WebSub hubs and rssClouds (WebSub section 4; RSS-016).

A document and its response make an offer. A source subscribes at one target of the offer.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from smartfeeds.core.web_address import DEFAULT_PORTS, address_key
from smartfeeds.features.polling.source import MAX_URL_BYTES, PushKind, is_own

MAX_TARGETS: Final = 8
HTTP_POST: Final = "http-post"


@dataclass(frozen=True, slots=True)
class PushTarget:
    """A hub or cloud. `url` is the address that takes requests, `topic` the address of the feed as it is subscribed to.

    `protocol` is "http-post", "xml-rpc" or "soap" for a cloud, `procedure` the name that it registers by.
    """

    kind: PushKind
    url: str
    topic: str
    protocol: str = ""
    procedure: str = ""


NO_TARGET: Final = PushTarget(PushKind.NONE, "", "")


@dataclass(frozen=True, slots=True)
class PushOffer:
    """What one answer of a feed names, the best target first."""

    targets: tuple[PushTarget, ...] = ()

    def names(self, target: PushTarget) -> bool:
        """Whether the hub or cloud is still that of the feed."""
        return any((one.kind, one.url, one.topic) == (target.kind, target.url, target.topic) for one in self.targets)

    def ranked(self, good: frozenset[str]) -> "PushOffer":
        """The offer: hubs before clouds, https before http, and hubs that are known to work first (WS-099, RC-055).

        `good` are the addresses of hubs at which subscriptions are active.
        """
        places = {PushKind.HUB: 0, PushKind.CLOUD: 1}

        def rank(target: PushTarget) -> tuple[int, bool, bool]:
            return places[target.kind], not target.url.startswith("https:"), target.url not in good

        return PushOffer(tuple(sorted(self.targets, key=rank)))


def offer_of(hubs: list[str], topic: str, clouds: list[PushTarget], own_url: str) -> PushOffer:
    """The usable targets: web addresses that are not those of this service (WS-140)."""
    named = [PushTarget(PushKind.HUB, url, topic) for url in hubs] + clouds
    usable = [
        target for target in named if is_web(target.url) and is_web(target.topic) and not is_own(target.url, own_url)
    ]
    return PushOffer(tuple(dict.fromkeys(usable))[:MAX_TARGETS])


def is_web(url: str) -> bool:
    """Whether a text is an http or https address with a host, and without a user."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in DEFAULT_PORTS
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and port != 0
        and url.isprintable()
        and " " not in url
        and len(url.encode()) <= MAX_URL_BYTES
    )


def same_address(one: str, other: str) -> bool:
    """Whether two addresses name one feed: scheme, case of the host, default port, spelling of escapes and a slash at
    the end of the path do not count (WS-110, RC-070)."""
    return one == other or _normal(one) == _normal(other)


def _normal(url: str) -> tuple[str, str]:
    path, _, query = address_key(url).partition("?")
    return path.rstrip("/"), query
