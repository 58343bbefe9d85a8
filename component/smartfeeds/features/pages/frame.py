"""The frame of every page: the look of the site, its base path, and the language, theme and name of the reader.

Every page is a template that is rendered through a `Frame`. Templates prefix each address of this site with `base`,
because `http.base_url` may have a path, and get their texts in the language of the reader.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from smartfeeds import __version__
from smartfeeds.core.model import Item
from smartfeeds.core.times import format_datetime
from smartfeeds.core.urls import ACCOUNT, ADMIN, DOCS, FEEDS, LOGIN, MANIFEST, OPENSEARCH, RIVER, SEARCH
from smartfeeds.core.urls import THEME as THEME_PATH
from smartfeeds.features.pages.faces import hue, initials
from smartfeeds.features.pages.images import LINK_REL, ImageWriter, image_writer
from smartfeeds.features.pages.look import DEFAULT_LOOK, SiteLook, look_of
from smartfeeds.features.pages.sanitise import link_of
from smartfeeds.features.pages.static_files import static_path
from smartfeeds.features.pages.wording import Wording
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.negotiation import HTML, languages
from smartfeeds.http.replies import Reply
from smartfeeds.texts import Texts, choose_language, translation_of

if TYPE_CHECKING:
    from jinja2 import Environment

# A page runs only our own script and shows only pictures that it contains; no script may make markup of text.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; img-src 'self' data:; media-src 'self'; manifest-src 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
THEME = "theme"  # the cookie with the theme that the reader chose
THEMES = ("light", "dark")


class Writing(NamedTuple):
    """The rights of the reader in the feed of a page: to publish, and to replace or delete entries of other users.
    `guests`: the feed takes replies of guests."""

    publish: bool
    edit_any: bool
    delete_any: bool
    guests: bool = False


@dataclass(frozen=True, slots=True)
class EntryForms:
    """The forms for entries that another feature has, as a part of the service. Without it pages have no links to them.

    `writing` reads what the sender of a request may write in its feed, None if nothing. `reply_node` reads the node in
    which the sender may answer an item, "" if there is none. Both raise FeedError.
    """

    writing: Callable[[HttpCall], Awaitable[Writing | None]]
    reply_node: Callable[[HttpCall, Item], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ReplyQueue:
    """The replies of guests that another feature keeps, as a part of the service. `count` reads how many wait in a feed
    for the sender of a request to decide, 0 if the sender may not. It raises FeedError."""

    count: Callable[[HttpCall], Awaitable[int]]


class FeedControl(NamedTuple):
    """A control of another feature beside the name of a feed, for one reader: its template, which uses the `state` of
    the reader and the path of its form."""

    template: str
    state: str
    action: str


@dataclass(frozen=True, slots=True)
class FeedControls:
    """The feature that has such controls, as a part of the service. `read` returns that of the signed-in sender of a
    request for the page of a feed, None if the sender can do nothing. It raises FeedError."""

    read: Callable[[HttpCall], Awaitable[FeedControl | None]]


@dataclass(frozen=True, slots=True)
class ReaderPlaces:
    """The pages of another feature for signed-in readers, as a part of the service: paths and labels. Every page links
    to them."""

    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ChatDoor:
    """The chat of the service, as a part of it. `is_open` returns whether a message to the service is answered."""

    is_open: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of the pages for one reader. Responses with equal frames and equal content are equal, so a frame is a
    part of the key of a cache.

    `writing` is None if the reader may write nothing in the feed of the page.
    `base` is the path of `http.base_url` without a slash at its end, "" for the root. `theme` is "" for that of the
    system. `reader` is the bare JID of the signed-in user, "" if nobody is signed in; then `csrf` is "" too. `admin`:
    the page links to the administration. `places` are the links of `ReaderPlaces`. `site_url` is the address of the
    site with the base path. `chat`: a message to the service is answered. `waiting` is the number of replies of guests
    that the reader may decide. `control` stands beside the name of the feed.
    """

    look: SiteLook = DEFAULT_LOOK
    base: str = ""
    language: str = "en"
    theme: str = ""
    reader: str = ""
    csrf: str = ""
    admin: bool = False
    places: tuple[tuple[str, str], ...] = ()
    writing: Writing | None = None
    site_url: str = ""
    chat: bool = False
    waiting: int = 0
    control: FeedControl | None = None

    @property
    def texts(self) -> Texts:
        """The texts in the language of the reader."""
        return Texts(self.language)

    @property
    def icon_path(self) -> str:
        """The path of the logo of the site, without the base path."""
        return self.look.logo.path if self.look.logo is not None else static_path("icon.svg")

    @property
    def next_theme(self) -> str:
        """The theme after the present one in the turn: that of the system, light, dark."""
        turn = ("", *THEMES)
        return turn[(turn.index(self.theme) + 1) % len(turn)]

    @property
    def image(self) -> ImageWriter:
        """The writer for the images of entries."""
        return image_writer(self.look, self.base, self.texts, self.site_url)

    def render(self, template: str, **values: object) -> str:
        """Returns a page or a part of one. `values` are the variables of the template."""
        return _environment(self.language).get_template(template).render(frame=self, base=self.base, **values)

    def page(self, template: str, **values: object) -> bytes:
        """Returns the bytes of a page. Lone surrogates become question marks."""
        return self.render(template, **values).encode("utf-8", "replace")


def frame_of(call: HttpCall) -> Frame:
    """Returns the frame for the sender of a request."""
    theme, chat = call.cookies.get(THEME, ""), call.parts.find(ChatDoor)
    places = call.parts.find(ReaderPlaces) if call.session_id else None
    return Frame(
        look_of(call),
        call.base_path,
        choose_language(languages(call.header("Accept-Language"))),
        theme if theme in THEMES else "",
        str(call.actor) if call.session_id else "",
        call.form_token if call.session_id else "",
        call.admin,
        () if places is None else places.links,
        site_url=call.site_url,
        chat=chat is not None and chat.is_open(),
    )


async def writing_frame(call: HttpCall) -> Frame:
    """Returns the frame of a page whose links depend on what the reader may write in its feed. Raises FeedError."""
    frame, forms = frame_of(call), call.parts.find(EntryForms)
    return frame if forms is None else replace(frame, writing=await forms.writing(call))


async def feed_frame(call: HttpCall) -> Frame:
    """Returns the frame of the page of a feed for a signed-in reader, with what other features have for the reader
    there. The replies that wait cost a look-up only in a feed that takes replies of guests. Raises FeedError."""
    frame, queue = await writing_frame(call), call.parts.find(ReplyQueue)
    if (controls := call.parts.find(FeedControls)) is not None:
        frame = replace(frame, control=await controls.read(call))
    if queue is None or frame.writing is None or not frame.writing.guests:
        return frame
    return replace(frame, waiting=await queue.count(call))


def page_reply(body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    """Returns the response with a page that is made anew for each request."""
    return Reply(
        body,
        HTML.media_type,
        headers={"Cache-Control": "no-store", **PAGE_HEADERS, **(headers or {})},
    )


PAGE_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Vary": "Accept, Accept-Encoding, Accept-Language, Authorization, Cookie",
    # Browsers must send the header Origin with the forms of this site, for `is_from_here`, and the page that led to
    # the sign-in in the header Referer. Other sites receive neither.
    "Referrer-Policy": "same-origin",
}


def _with(path: str, name: str, value: str) -> str:
    """The path of a feed's page with one parameter."""
    return f"{path}?{name}={quote(value, safe='')}"


# One for each language of `texts.LANGUAGES`, with its compiled templates.
@lru_cache(16)
def _environment(language: str) -> "Environment":
    """The templates in one language."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # with the first page

    environment = Environment(
        # Those of a feature are named `FEATURE/templates/NAME`.
        loader=ChoiceLoader(
            [PackageLoader("smartfeeds.features.pages", "templates"), PackageLoader("smartfeeds", "features")]
        ),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt variable is an error, not an empty text
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    # The extension adds the method, which the types of Jinja do not know.
    environment.install_gettext_translations(translation_of(language), newstyle=True)  # type: ignore[attr-defined]
    wording = Wording(Texts(language))
    environment.filters.update(
        when=wording.time,
        stamp=format_datetime,
        size=wording.size,
        number=wording.number,
        link=link_of,
        filtered=_with,
        person=wording.person,
        initials=initials,
        hue=hue,
    )
    environment.globals.update(
        rel=LINK_REL,
        version=__version__,
        static=static_path,
        river_path=RIVER,
        feeds_path=FEEDS,
        search_path=SEARCH,
        docs_path=DOCS,
        login_path=LOGIN,
        account_path=ACCOUNT,
        admin_path=ADMIN,
        theme_path=THEME_PATH,
        manifest_path=MANIFEST,
        opensearch_path=OPENSEARCH,
    )
    return environment
