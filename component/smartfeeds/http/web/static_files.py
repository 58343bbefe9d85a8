"""Style, scripts and icon of the pages."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files

from smartfeeds.core.files import LOGO_TYPES
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.hashed_files import HashedFile, hashed_file
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.operations import IF_NONE_MATCH, Operation
from smartfeeds.http.replies import Reply

_TYPES = {
    "app.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "sign_in.js": "text/javascript; charset=utf-8",
    "images.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "api.css": "text/css; charset=utf-8",
    "feed.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_MEDIA_TYPES = sorted({media_type.partition(";")[0] for media_type in (*_TYPES.values(), *LOGO_TYPES.values())})

GET_ICON = Operation(
    "icon",
    "The icon",
    {200: {media_type: {"type": "string"} for media_type in LOGO_TYPES.values()}},
    parameters=(IF_NONE_MATCH,),
)
GET_FILE = Operation(
    "static",
    "Style, script and icon of the pages",
    {200: {media_type: {"type": "string"} for media_type in _MEDIA_TYPES}},
    parameters=(IF_NONE_MATCH,),
)


@cache
def static_files() -> Mapping[str, HashedFile]:
    """Every file by its name in the package. The files are read once."""
    return {name: _read(name, media_type) for name, media_type in _TYPES.items()}


def static_path(name: str) -> str:
    """The path of a file."""
    return static_files()[name].path


async def get_static(call: HttpCall) -> Reply:
    """A file. Raises HttpError for an unknown name."""
    own = (file for file in (call.look.style, call.look.logo) if file is not None)
    for file in (*static_files().values(), *own):
        if call.path == file.path:
            return call.zipped(unless_known(call.header("If-None-Match"), file.reply))
    raise HttpError(HTTPStatus.NOT_FOUND, "there is no such file; reload the page")


async def get_icon(call: HttpCall) -> Reply:
    """The icon, or the logo of the operator, under its fixed name."""
    icon = call.look.logo or static_files()["icon.svg"]
    reply = icon.reply.with_headers(Cache_Control="public, max-age=86400")
    return call.zipped(unless_known(call.header("If-None-Match"), reply))


def _read(name: str, media_type: str) -> HashedFile:
    return hashed_file(name, media_type, (files(__package__) / "static" / name).read_bytes())
