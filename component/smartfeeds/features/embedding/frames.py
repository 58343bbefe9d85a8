"""The frame of a feed on a page of another site: `/embed/NAME/?VIEW`.

A frame shows what everybody may read, whoever is signed in: a page that frames it could otherwise lead its visitors to
use their rights here without knowing it. The content security policy names the sites that the owner of the feed has
listed, so browsers show the frame on no other page.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup

from smartfeeds.core.frame_origins import read_origin
from smartfeeds.core.jid import ANONYMOUS
from smartfeeds.core.model import Item, Node
from smartfeeds.core.page import ResultSetRequest, parse_number
from smartfeeds.core.times import format_t
from smartfeeds.core.urls import EMBED, entry_path, feed_path
from smartfeeds.core.view import PARAMETERS, Order
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding.files import frame_file_path
from smartfeeds.features.embedding.guests import MAX_NAME, MAX_TEXT, GuestForms, GuestLimits, clean_name, clean_text
from smartfeeds.features.embedding.requests import SubmitReply, takes_guests
from smartfeeds.features.pages.article import shown_body
from smartfeeds.features.pages.frame import PAGE_POLICY, THEMES, Frame, page_reply
from smartfeeds.features.pages.look import look_of
from smartfeeds.formats.authorship import other_publisher
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.feed_details import title_of
from smartfeeds.http.byte_cache import ByteCache
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import items_of
from smartfeeds.http.http_errors import STATUSES, HttpError
from smartfeeds.http.negotiation import languages
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.parameter_names import nearest_name
from smartfeeds.http.queries import MAX_QUERY_BYTES, read_parameters, read_query
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import ask
from smartfeeds.service.requests import FeedPage, PullFeed
from smartfeeds.texts import LANGUAGES, N_, choose_language

CACHE_BYTES = 1024 * 1024  # of lists of entries: every change of a feed makes each of its frames ask for one
USUAL, MOST = 20, 50  # entries in a frame
MAX_SHOWN = 2 * MAX_TEXT  # characters of a reply that was refused, in the form that is shown again
# The parameters of a frame beside those of the view. A view has `lang`, so the language of the texts is `language`.
_OWN = ("max", "theme", "language", "site", "replies", "sent")
_VALUES = {"theme": ("", *THEMES), "language": ("", *LANGUAGES), "replies": ("", "off"), "sent": ("", "1")}
_NOBODY = "frame-ancestors 'none'"

SHOW_FRAME = page_for_people("frame", "A feed in a frame for pages of other sites")
# The form belongs to no session: a guest has none, and a user who is signed in replies as a guest here.
SEND_REPLY = replace(page_for_people("guestReply", "Sends the reply of a guest", form=True), own_token=True)


@dataclass(frozen=True, slots=True)
class FrameQuery:
    """The query of a frame. `view` is that of the feed, with an order. `site` is the origin of the page around the
    frame as its script states it, "" if it does not. `theme` is "" for that of the system, `language` "" for that of
    the browser. `replies`: the frame has a form for guests if the feed takes their replies. `sent`: a guest has just
    sent one."""

    view: str
    most: int = USUAL
    theme: str = ""
    language: str = ""
    site: str = ""
    replies: bool = True
    sent: bool = False

    @property
    def target(self) -> str | None:
        """The id or address that a reply in this frame answers, "" for no entry; None if a reply would not be seen in
        this view, because it selects its entries by something else."""
        pairs = parse_qsl(self.view, keep_blank_values=True)
        targets = [value for name, value in pairs if name == "in-reply-to"]
        others = {name for name, _ in pairs} - {"in-reply-to", "order"}
        return None if others or len(targets) > 1 else "".join(targets)


def read_frame_query(raw: str) -> FrameQuery:
    """Reads the query of a frame. Raises FeedError(BAD_REQUEST)."""
    if len(raw) > MAX_QUERY_BYTES:
        raise FeedError(Condition.BAD_REQUEST, f"a query string is at most {MAX_QUERY_BYTES} bytes long")
    fields = [field for field in raw.split("&") if field]
    for field in fields:
        name = field.partition("=")[0]
        if name not in PARAMETERS and (nearest := nearest_name(name, _OWN)) not in ("", name):
            raise FeedError(Condition.BAD_REQUEST, f"a frame has no parameter {name[:40]!r}; did you mean {nearest}?")
    own = read_parameters("&".join(field for field in fields if field.partition("=")[0] in _OWN), _OWN)
    query = read_query("&".join(field for field in fields if field.partition("=")[0] not in _OWN))
    if query.is_pull:
        raise FeedError(Condition.BAD_REQUEST, "a frame shows the newest entries of a view: it takes no position")
    view = query.plain_view
    if not any(name == "order" for name, _ in parse_qsl(view, keep_blank_values=True)):
        # The newest entry is on top, and an edited one stays in its place.
        view = f"{view}&order={Order.CREATED.value}".removeprefix("&")
    most = parse_number(own.get("max", str(USUAL)), "max")
    for name, values in _VALUES.items():
        if own.get(name, "") not in values:
            raise FeedError(Condition.BAD_REQUEST, f"{name}: one of {', '.join(filter(None, values))}")
    return FrameQuery(
        view,
        min(max(1, most), MOST),
        own.get("theme", ""),
        own.get("language", ""),
        _site(own),
        replies=not own.get("replies"),
        sent=bool(own.get("sent")),
    )


def _site(own: dict[str, str]) -> str:
    """The origin of the page around the frame, "" for anything else: an unknown page gets no messages."""
    try:
        return read_origin(own.get("site", ""))
    except ValueError:
        return ""


def frame_policy(origins: Sequence[str]) -> str:
    """Returns the content security policy of a frame that pages of these origins may show, in their normal form."""
    assert _NOBODY in PAGE_POLICY
    return PAGE_POLICY.replace(_NOBODY, f"frame-ancestors {' '.join(origins)}") if origins else PAGE_POLICY


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """The fields of a guest, for the form that is shown again with an error."""

    name: str = ""
    text: str = ""
    error: str = ""


class Frames:
    """Handles frames, and the replies of guests in them."""

    def __init__(self, tools: SiteTools) -> None:
        self._handle = tools.handle
        self._change = tools.perform
        self._service = tools.domain
        self._bodies = tools.bodies
        self._forms = tools.parts.get(GuestForms)
        self._limits = tools.parts.get(GuestLimits)
        self._lists: ByteCache[tuple[object, ...], Markup] = ByteCache(CACHE_BYTES)

    async def show(self, call: HttpCall) -> Reply:
        """The frame of a view. Raises FeedError."""
        query = read_frame_query(call.query)
        return await self._page(call, query, await self._pull(call, query))

    async def post(self, call: HttpCall) -> Reply:
        """Stores the reply of a guest, or shows the form again with an error. Raises FeedError."""
        query = read_frame_query(call.query)
        answer = await self._pull(call, query)
        fields = await self._bodies.fields(call)
        written = WrittenReply(fields.get("name", "")[:MAX_SHOWN], fields.get("text", "")[:MAX_SHOWN])
        try:
            # Programs fill in every field. They are told that all went well, so that they do not look for the reason.
            if not fields.get("website"):
                await self._submit(call, query, answer, fields)
        except FeedError as error:
            if isinstance(error, HttpError):
                raise
            page = await self._page(call, query, answer, replace(written, error=error.text))
            return page.with_status(STATUSES[error.condition])
        rest = "&".join(field for field in call.query.split("&") if field and not field.startswith("sent="))
        return call.see_other(f"{feed_path(call.name, folder=EMBED)}?{f'{rest}&' if rest else ''}sent=1")

    async def _submit(self, call: HttpCall, query: FrameQuery, answer: FeedPage, fields: Mapping[str, str]) -> None:
        target = query.target
        if target is None or not takes_guests(answer.node):
            raise FeedError(Condition.FORBIDDEN, N_("This feed takes no replies from guests."))
        # The use case cleans them, too. Here a mistake costs the guest none of the replies of the network.
        name, text = clean_name(fields.get("name", "")), clean_text(fields.get("text", ""))
        reply_id = self._forms.reply_id(fields.get("token", ""), answer.node.node_no, target, name, text)
        self._limits.check(call.address)
        request = SubmitReply(ANONYMOUS, self._service, call.name, reply_id, name, text, target)
        await self._change(request)

    async def _pull(self, call: HttpCall, query: FrameQuery) -> FeedPage:
        page = ResultSetRequest(str(query.most), None, "")
        request = PullFeed(ANONYMOUS, self._service, call.name, query.view, page=page, asker=call.address)
        return await ask(self._handle, request, FeedPage)

    def _form(self, query: FrameQuery, answer: FeedPage, written: "WrittenReply") -> dict[str, object] | None:
        """The values of the form, None if the frame has none."""
        target = query.target
        if not query.replies or target is None or not takes_guests(answer.node):
            return None
        return {
            "token": self._forms.token(answer.node.node_no, target),
            "name": written.name,
            "text": written.text,
            "error": written.error,
            "most_name": MAX_NAME,
            "most_text": MAX_TEXT,
        }

    async def _page(
        self, call: HttpCall, query: FrameQuery, answer: FeedPage, written: "WrittenReply | None" = None
    ) -> Reply:
        frame = _frame_of(call, query)
        written = written or WrittenReply()
        written = replace(written, error=frame.texts.message(written.error))
        entries = await self._entries(frame, call, query, answer)
        origins = answer.node.options.frame_origins
        path = feed_path(call.name)
        body = frame.page(
            "embedding/templates/frame.html",
            title=title_of(answer.node),
            language=answer.node.options.language,
            feed=path,
            files={name: frame_file_path(name) for name in ("frame.css", "frame.js")},
            site=query.site if query.site in origins else "",
            stream=f"{path}?{_changes(query.view)}",
            since=f"time:{format_t(answer.node.last_modified_us + 1)}",
            entries=entries,
            here=f"{feed_path(call.name, folder=EMBED)}{f'?{call.query}' if call.query else ''}",
            form=self._form(query, answer, written),
            sent=query.sent,
        )
        return call.zipped(page_reply(body, {"Content-Security-Policy": frame_policy(origins)}))

    async def _entries(self, frame: Frame, call: HttpCall, query: FrameQuery, answer: FeedPage) -> Markup:
        """The list of entries. It is made in a thread and cached: all readers of a frame load it after a change."""
        shows_publisher = answer.node.options.shows_publisher
        key = (call.site_url, call.name, query.view, query.most, frame.language, shows_publisher, answer.version)
        entries = self._lists.get(key)
        if entries is None:
            # Of deleted entries nothing is left to show.
            items = [item for item in reversed(items_of(answer)) if not item.deleted]
            entries = Markup(await asyncio.to_thread(_list, frame, answer.node, items))  # noqa: S704 - made by a template
            self._lists.put(key, entries, len(entries.encode("utf-8", "replace")))
        return entries


def _frame_of(call: HttpCall, query: FrameQuery) -> Frame:
    """The frame of the page. It has no reader: sessions do not count here."""
    language = query.language or choose_language(languages(call.header("Accept-Language")))
    return Frame(look_of(call), call.base_path, language, query.theme)


def _changes(view: str) -> str:
    """The query of the stream with every change of a view."""
    pairs = [pair for pair in parse_qsl(view, keep_blank_values=True) if pair[0] != "order"]
    return urlencode([*pairs, ("order", Order.MODIFIED.value)])


def _list(frame: Frame, node: Node, items: Iterable[Item]) -> str:
    return frame.render("embedding/templates/entries.html", entries=[_card(frame, node, item) for item in items])


def _card(frame: Frame, node: Node, item: Item) -> dict[str, object]:
    entry = read_entry(item)
    body = shown_body(frame, entry)
    return {
        "entry": entry,
        "anchor": f"e-{item.item_no}",
        "mark": f"{item.item_no}.{item.modified_us}",
        "path": entry_path(node.name, item.id),
        "heading": entry.title.plain if body.has_heading else "",
        "publisher": other_publisher(node, item, entry),
        "body": Markup(body.html),  # noqa: S704 - it was cleaned
        "cut": body.cut,
        "edited": item.revision > 1,
        "modified_us": item.modified_us,
    }
