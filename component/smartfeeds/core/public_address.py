"""Web addresses without the secrets that they may contain: for documents, which everybody may read, and for the log."""

import re
from typing import Final
from urllib.parse import unquote_plus, urlsplit

# The endings of parameter names whose values give access: `api_key`, `feed_token`, `X-Amz-Signature`. Other parameters,
# such as `feed=rss2` and `id=5`, are a part of the address that everybody needs.
_SECRET_NAME: Final = re.compile(r"(?:key|token|secret|password|passwd|pwd|pass|auth|sig|signature|credential)\Z", re.I)


def without_secrets(url: str) -> str:
    """Returns the address without name and password, and without the parameters whose names look like secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    fields = parts.query.split("&")
    rest = [field for field in fields if not _SECRET_NAME.search(unquote_plus(field.partition("=")[0]).strip())]
    if "@" not in parts.netloc and len(rest) == len(fields):
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="&".join(rest)).geturl()
