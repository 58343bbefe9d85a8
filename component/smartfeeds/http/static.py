"""Style, script and icon of the pages, the login and the redirect from `/`.

The name of each file holds a hash of its content, so browsers may cache it for ever (RFC 8246).
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files

from smartfeeds.core.urls import FEEDS
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import is_known
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import takes_gzip
from smartfeeds.http.operations import IF_NONE_MATCH, Operation
from smartfeeds.http.replies import Reply

STATIC = "/static/"
LOGIN = "/login"
_FOR_EVER = "public, max-age=31536000, immutable"
_FOR_A_DAY = "public, max-age=86400"
_TYPES = {
    "app.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

ROOT = Operation("root", "Redirect to the list of feeds", {307: {}})
ASK_LOGIN = Operation("login", "Makes a browser ask for the password", {303: {}})
GET_ICON = Operation("icon", "The icon", {200: {_TYPES["icon.svg"]: {"type": "string"}}}, parameters=(IF_NONE_MATCH,))
GET_FILE = Operation(
    "static",
    "Style, script and icon of the pages",
    {200: {media_type.partition(";")[0]: {"type": "string"} for media_type in _TYPES.values()}},
    parameters=(IF_NONE_MATCH,),
)


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the package, read once. `zipped` is the compressed `reply`."""

    path: str
    etag: str
    reply: Reply
    zipped: Reply


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Every file by its name in the package."""
    return {name: _read(name, media_type) for name, media_type in _TYPES.items()}


def static_path(name: str) -> str:
    """The path of a file."""
    return static_files()[name].path


async def get_static(call: HttpCall) -> Reply:
    """A file. Raises HttpError for an unknown name."""
    for file in static_files().values():
        if call.path == file.path:
            return _reply(call, file, _FOR_EVER)
    raise HttpError(HTTPStatus.NOT_FOUND, "there is no such file; reload the page")


async def get_icon(call: HttpCall) -> Reply:
    """The icon under its fixed name."""
    return _reply(call, static_files()["icon.svg"], _FOR_A_DAY)


async def get_root(_call: HttpCall) -> Reply:
    """Redirects to the list of feeds."""
    return Reply(status=HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": FEEDS})


async def get_login(call: HttpCall) -> Reply:
    """Makes the browser ask for the password, which it then sends for all paths (RFC 7617 2.2).

    A closed feed cannot ask for the password itself: that would reveal that the feed exists.
    """
    if call.token is None:
        raise FeedError(Condition.NOT_AUTHORIZED, "log in with a token as the password")
    return Reply(status=HTTPStatus.SEE_OTHER, headers={"Location": FEEDS, "Cache-Control": "no-store"})


def _reply(call: HttpCall, file: StaticFile, keep: str) -> Reply:
    headers = {"ETag": file.etag, "Cache-Control": keep, "Vary": "Accept-Encoding"}
    if is_known(call.header("If-None-Match"), file.etag):
        return Reply(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    reply = file.zipped if takes_gzip(call.header("Accept-Encoding")) else file.reply
    return Reply(reply.body, reply.media_type, reply.status, {**reply.headers, **headers})


def _read(name: str, media_type: str) -> StaticFile:
    body = (files(__package__) / "static" / name).read_bytes()
    digest = sha256(body).hexdigest()[:16]
    stem, _, suffix = name.partition(".")
    reply = Reply(body, media_type)
    zipped = gzip.compress(body, 9, mtime=0)
    shorter = Reply(zipped, media_type, headers={"Content-Encoding": "gzip"}) if len(zipped) < len(body) else reply
    return StaticFile(f"{STATIC}{stem}.{digest}.{suffix}", f'"{digest}"', reply, shorter)
