"""The script for pages of other sites, and the style and script of frames.

The script has a fixed address, which other sites have in their pages, so their browsers ask for a newer one after an
hour. The address of the other files has their hash.
"""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib import resources

from smartfeeds.core.urls import EMBED
from smartfeeds.features.pages.hashed_files import HashedFile, hashed_file
from smartfeeds.features.pages.site_files import fixed_file
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.operations import IF_NONE_MATCH, Operation
from smartfeeds.http.replies import Reply

SCRIPT = "/embed.js"
_JAVASCRIPT, _CSS = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_FRAME_FILES = {"frame.js": _JAVASCRIPT, "frame.css": _CSS}

GET_SCRIPT = Operation(
    "embedScript",
    "The script that shows a feed in a frame on a page of another site",
    {200: {"text/javascript": {"type": "string"}}},
    parameters=(IF_NONE_MATCH,),
)
GET_FRAME_FILE = Operation(
    "frameFile",
    "Style and script of frames",
    {200: {media_type.partition(";")[0]: {"type": "string"} for media_type in (_CSS, _JAVASCRIPT)}},
    parameters=(IF_NONE_MATCH,),
)


@cache
def _script() -> Reply:
    # A page that isolates itself (Cross-Origin-Embedder-Policy) loads only what permits it.
    headers = {"Vary": "Accept-Encoding", "Cross_Origin_Resource_Policy": "cross-origin"}
    return fixed_file(_JAVASCRIPT, _read("embed.js"), **headers)


@cache
def _frame_files() -> Mapping[str, HashedFile]:
    """The files of frames by their names in the package."""
    return {name: hashed_file(name, media_type, _read(name), EMBED) for name, media_type in _FRAME_FILES.items()}


def frame_file_path(name: str) -> str:
    """Returns the path of a file of frames."""
    return _frame_files()[name].path


async def get_script(call: HttpCall) -> Reply:
    """The script for other sites."""
    return call.zipped(unless_known(call.header("If-None-Match"), _script()))


async def get_file(call: HttpCall) -> Reply:
    """A file of frames. Raises HttpError for an unknown name."""
    for file in _frame_files().values():
        if call.path == file.path:
            return call.zipped(unless_known(call.header("If-None-Match"), file.reply))
    raise HttpError(HTTPStatus.NOT_FOUND, "there is no such file; the frame of a feed is at /embed/NAME/")


def _read(name: str) -> bytes:
    return (resources.files(__package__) / "static" / name).read_bytes()
