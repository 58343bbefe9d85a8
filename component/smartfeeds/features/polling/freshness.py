"""How long a response says that it stays fresh (RFC 9111 section 4.2; SRC-022, SRC-024)."""

import re
from typing import Final

from smartfeeds.core.times import US_PER_S
from smartfeeds.formats.dates import parse_date
from smartfeeds.net.headers import Headers

_MAX_AGE: Final = re.compile(r"""(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,12})""", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]{1,12}")
# With these the response says that it must not be stored, and nothing about the time of the next document.
_TIMELESS: Final = re.compile(r"(?:^|[,\s])no-(?:cache|store)(?:$|[,\s=])", re.IGNORECASE)


def fresh_s(headers: Headers) -> int | None:
    """The seconds for which a response is fresh: max-age less Age, else Expires less Date. None if it does not say, or
    says that it is not."""
    control = ",".join(headers.getall("Cache-Control", ()))
    if _TIMELESS.search(control):
        return None
    match = _MAX_AGE.search(control)
    if match is not None:
        age = headers.get("Age", "").strip()
        seconds = int(match[1]) - (int(age) if _NUMBER.fullmatch(age) else 0)
    else:
        expires_us, date_us = (parse_date(headers.get(name, "")) for name in ("Expires", "Date"))
        if expires_us is None or date_us is None:
            return None
        seconds = (expires_us - date_us) // US_PER_S
    return seconds if seconds > 0 else None
