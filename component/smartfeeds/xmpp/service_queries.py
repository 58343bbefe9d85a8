"""Queries about the service: its uptime, its clock and its card (XEP-0012 section 4, XEP-0202, XEP-0054).

The answers are the same at every address of the service. slixmpp answers pings and queries for the version.
"""

from collections.abc import Callable, Mapping

from smartfeeds.core.jid import Jid
from smartfeeds.core.text import escape
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.avatar import card_photo
from smartfeeds.xmpp.elements import Element

# Each namespace is a feature of the service.
PAYLOADS: Mapping[str, str] = {ns.LAST: "query", ns.TIME: "time", ns.VCARD: "vCard"}
_DESCRIPTION = "Publish-subscribe service"

QueryReader = Callable[[Element, Jid, str], bytes]


def service_readers(
    name: str, url: str, now_us: Callable[[], int], nick: str = "", picture: bytes = b""
) -> Mapping[tuple[str, str], QueryReader]:
    """Returns the readers of queries, by type of the IQ and tag of the payload. They return the body of a response.

    `name`, `nick`, `url` and `picture` are for people, and all but `name` may be empty. The uptime begins with this
    call. `now_us` returns microseconds.
    """
    start_us = now_us()
    link = f"<URL>{escape(url)}</URL>" if url else ""
    called = f"<NICKNAME>{escape(nick)}</NICKNAME>" if nick else ""
    details = f"<FN>{escape(name)}</FN>{called}{card_photo(picture)}{link}<DESC>{_DESCRIPTION}</DESC>"
    card = f"<vCard xmlns='{ns.VCARD}'>{details}</vCard>".encode()
    answers: Mapping[str, Callable[[], bytes]] = {
        ns.LAST: lambda: f"<query xmlns='{ns.LAST}' seconds='{max(0, now_us() - start_us) // US_PER_S}'/>".encode(),
        ns.TIME: lambda: (
            f"<time xmlns='{ns.TIME}'><tzo>+00:00</tzo><utc>{format_datetime(now_us())}</utc></time>".encode()
        ),
        ns.VCARD: lambda: card,
    }
    return {("get", ns.tag(space, PAYLOADS[space])): _reader(answer) for space, answer in answers.items()}


def _reader(answer: Callable[[], bytes]) -> QueryReader:
    return lambda _element, _actor, _service: answer()
