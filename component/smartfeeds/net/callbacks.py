"""Requests to callbacks: addresses that subscribers choose, and hubs and clouds that call us back.

Every result is a value: a status, or the reason why there was none. The IP address of each connection is checked when
its socket is made (`addresses`). Only http and https are requested, without cookies, proxies or .netrc. A redirect is
an answer like any other unless the caller asks to follow it.
"""

from dataclasses import dataclass
from typing import Final

TOTAL_S: Final = 10.0  # for connecting, sending and the first bytes of the answer (WS-035, WS-065, RC-044)
PERMANENT: Final = frozenset({301, 308})
# WebSub knows 307 and 308 only; a hub that answers 301 may mean no more than 307 (WS-106).
PERMANENT_FOR_HUBS: Final = frozenset({308})


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """The answer to a request.

    `status` is the HTTP status, 0 if there was none; then `reason` is a sentence for people. `body` has the first bytes
    of the body, as many as the caller wanted. `retry_after_s` is the pause in seconds that the answer asks for, None if
    it asks for none. `url` is the address after redirects, `permanent_url` the one after permanent redirects only.
    """

    status: int = 0
    body: bytes = b""
    reason: str = ""
    retry_after_s: float | None = None
    url: str = ""
    permanent_url: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def outcome(self) -> str:
        """The status or the reason, for people."""
        return f"answered {self.status}" if self.status else self.reason
