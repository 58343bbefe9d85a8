"""Style, scripts and icon of the pages."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib import resources

from smartfeeds.core.feed_files import LOGO_TYPES
from smartfeeds.features.pages.hashed_files import HashedFile, hashed_file
from smartfeeds.features.pages.look import look_of
from smartfeeds.formats.json_text import dump_json
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import unless_known
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.operations import IF_NONE_MATCH, Operation
from smartfeeds.http.replies import Reply
from smartfeeds.texts import LANGUAGES, N_, Texts

_TYPES = {
    "app.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "my_feeds.js": "text/javascript; charset=utf-8",
    "sign_in.js": "text/javascript; charset=utf-8",
    "images.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "api.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    # For phones, which take no other icons for apps.
    "icon-192.png": "image/png",
    "icon-512.png": "image/png",
}

# The words of feed.css by the variables that it uses.
_WORDS = {
    "--what": N_("This is a feed: the newest entries, for a feed reader"),
    "--how": N_(
        "To subscribe, copy the address of this page from the address bar, and add it in your feed reader, for example "
        "Miniflux, FreshRSS, Thunderbird, NetNewsWire or Newsboat. The reader then shows every new entry."
    ),
    "--page": N_("The same entries as a page:"),
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
    """Every file by its name in the package, and feed.css by its language. The files are read once."""
    files = {name: hashed_file(name, media_type, _read(name)) for name, media_type in _TYPES.items()}
    return files | {feed_style(language): _feed_style(language) for language in LANGUAGES}


def feed_style(language: str) -> str:
    """The name of the style sheet of feeds in a language."""
    return f"feed.{language}.css"


def static_path(name: str) -> str:
    """The path of a file."""
    return static_files()[name].path


async def get_static(call: HttpCall) -> Reply:
    """A file. Raises HttpError for an unknown name."""
    look = look_of(call)
    own = (file for file in (look.style, look.logo) if file is not None)
    for file in (*static_files().values(), *own):
        if call.path == file.path:
            return call.zipped(unless_known(call.header("If-None-Match"), file.reply))
    raise HttpError(HTTPStatus.NOT_FOUND, "there is no such file; reload the page")


async def get_icon(call: HttpCall) -> Reply:
    """The icon, or the logo of the operator, under its fixed name."""
    icon = look_of(call).logo or static_files()["icon.svg"]
    # Its name has no hash, so browsers must ask again for another logo.
    reply = icon.reply.with_headers(Cache_Control="public, max-age=86400")
    return call.zipped(unless_known(call.header("If-None-Match"), reply))


def _feed_style(language: str) -> HashedFile:
    texts = Texts(language)
    words = "".join(f" {name}: {dump_json(texts.say(text)).decode()};" for name, text in _WORDS.items())
    return hashed_file("feed.css", _TYPES["style.css"], _read("feed.css") + f":root {{{words} }}\n".encode())


def _read(name: str) -> bytes:
    return (resources.files(__package__) / "static" / name).read_bytes()
