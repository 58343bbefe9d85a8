"""The editor: pages to write, edit and delete entries, and to answer them. They work without a script.

A form with files has several parts. The files are stored while they arrive, as those of posts are; a preview or an
error lists them in the form, and they are removed later if no entry refers to them.

An edit names the version that it began with. If somebody else was faster, the page shows both versions, and the form
keeps the text of the user, who merges the other one into it. Nothing that was typed is lost.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from markupsafe import Markup

from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.token import TokenScope, covers
from smartfeeds.core.urls import DELETE, WRITE, entry_path, feed_path, reply_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.form_parts import read_parts
from smartfeeds.features.authoring.rendering import MarkdownTurns
from smartfeeds.features.authoring.requests import WritingShown
from smartfeeds.features.authoring.rights import WriterRights
from smartfeeds.features.authoring.uploads import Uploads
from smartfeeds.features.pages import bookmarklet
from smartfeeds.features.pages.article import pictures_of
from smartfeeds.features.pages.differences import Differences
from smartfeeds.features.pages.frame import frame_of, page_reply
from smartfeeds.features.pages.sanitise import SHORT, clean, link_of
from smartfeeds.formats import atom
from smartfeeds.formats.entry import Entry, EntryLink, ReplyReference, TextKind, read_entry
from smartfeeds.formats.entry_form import WrittenFields, edit, fields_of, new_entry
from smartfeeds.formats.feed_details import title_of
from smartfeeds.formats.post import fit_markdown, markdown_of
from smartfeeds.formats.xml import parse_stored
from smartfeeds.http.bodies import unique
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import HttpError, error_reply
from smartfeeds.http.negotiation import MULTIPART
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import read_fields, read_parameters, write_query
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import SiteTools
from smartfeeds.service.answers import ask
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.item_writes import item_tag
from smartfeeds.service.requests import (
    GetItem,
    ItemPrecondition,
    ItemShown,
    Publish,
    Published,
    Retract,
)
from smartfeeds.texts import Texts

PREVIEW = "preview"
REPLY, REPLY_FEED = "reply", "of"
REPLIES_ANCHOR = "replies"  # of the answers on the page of an entry
LINK, TITLE = "link", "title"  # a page to write about, which a bookmark names (`features.pages.bookmarklet`)
MARKDOWN = "markdown"
KEPT_FILE = "kept"  # a file that the entry has, or that was uploaded with a preview
_LENGTH = re.compile(r"[0-9]{1,18}")
_KINDS = {MARKDOWN: TextKind.TEXT, TextKind.TEXT.value: TextKind.TEXT, TextKind.HTML.value: TextKind.HTML}

_RIGHT = TokenScope.PUBLISH
WRITE_PAGE = page_for_people("writePage", "The page to write or edit an entry", scope=_RIGHT)
WRITE_ENTRY = page_for_people("writeEntry", "Publishes the entry of the form, or previews it", form=True, scope=_RIGHT)
DELETE_PAGE = page_for_people("deletePage", "The page to confirm a deletion", scope=_RIGHT)
DELETE_ENTRY = page_for_people("deleteEntry", "Deletes an entry", form=True, scope=_RIGHT)


@dataclass(frozen=True, slots=True)
class _Form:
    """A form as it was sent. `tag` is that of the version that the edit began with. With `markdown` the text of the
    fields is Markdown, which is stored as HTML. `reply` is the item that the entry answers, `reply_feed` its feed if
    that is another one."""

    fields: WrittenFields
    markdown: bool = False
    tag: str = ""
    reply: str = ""
    reply_feed: str = ""
    action: str = ""


class Editor:
    """Handles the pages."""

    def __init__(self, tools: SiteTools, markdown: MarkdownTurns, uploads: Uploads, rights: WriterRights) -> None:
        self._handle = tools.handle
        self._change = tools.perform
        self._service = tools.domain
        self._bodies = tools.bodies
        self._markdown = markdown
        self._uploads = uploads
        self._rights = rights

    async def show(self, call: HttpCall) -> Reply:
        """The form for a new entry, with the title and the link of the query, or for the entry of the path. Raises
        FeedError."""
        query = read_parameters(call.query, (REPLY, REPLY_FEED, LINK, TITLE))
        reply, feed = query.get(REPLY, ""), query.get(REPLY_FEED, "")
        if reply and not feed and not call.item_id:
            node = await self._rights.reply_node(call, await self._item(call, reply))
            if node and node != call.name:
                return call.see_other(reply_path(node, reply, call.name))
        writing = await self._rights.get_writing(call)
        if not call.item_id:
            writing.access.check_publish()
            fields = WrittenFields(query.get(TITLE, ""), link=query.get(LINK, ""))
            return await self._page(call, writing, _Form(fields, markdown=True, reply=reply, reply_feed=feed))
        item = await self._item(call)
        _check_overwrite(call, writing, item)
        fields, markdown = await self._opened(call, item)
        return await self._page(call, writing, _Form(fields, markdown, item_tag(item)))

    async def post(self, call: HttpCall) -> Reply:
        """Publishes the entry, or shows the form again: with a preview, an error, or the version of somebody else."""
        writing = await self._rights.get_writing(call)
        form, fault = await self._read(call)
        if fault is not None:
            page = await self._page(call, writing, form, error=fault.text)
            own = fault.headers if isinstance(fault, HttpError) else {}
            return replace(page, status=error_reply(fault).status, headers={**page.headers, **own})
        if form.action == PREVIEW:
            return await self._page(call, writing, form, preview=True)
        try:
            await self._publish(call, writing, form)
        except FeedError as error:
            if error.condition is Condition.PRECONDITION_NOT_MET:
                return await self._page(call, writing, form, other=await self._item(call))
            if error.condition in _ABOUT_FIELDS:
                return await self._page(call, writing, form, error=error.text)
            raise
        if form.reply and not call.item_id:
            return call.see_other(f"{entry_path(form.reply_feed or call.name, form.reply)}#{REPLIES_ANCHOR}")
        return call.see_other(feed_path(call.name))

    async def confirm(self, call: HttpCall) -> Reply:
        """The page that asks before an entry is deleted. Raises FeedError."""
        writing = await self._rights.get_writing(call)
        return self._delete_page(call, writing, await self._item(call))

    async def delete(self, call: HttpCall) -> Reply:
        """Deletes the entry if it is still the version that the user saw."""
        writing = await self._rights.get_writing(call)
        tag = (await self._bodies.fields(call)).get("tag", "")
        expected = ItemPrecondition(frozenset({tag}))
        try:
            await self._change(
                Retract(call.actor, self._service, call.name, call.item_id, notify=True, expected=expected)
            )
        except FeedError as error:
            if error.condition is not Condition.PRECONDITION_NOT_MET:
                raise
            return self._delete_page(call, writing, await self._item(call), changed=True)
        return call.see_other(feed_path(call.name))

    async def _publish(self, call: HttpCall, writing: WritingShown, form: _Form) -> None:
        fields = await self._rendered(call, form)
        if call.item_id:
            item = await self._item(call)
            # The fields of the form replace those of this version only. `expected` below covers a change after this
            # read.
            if item_tag(item) != form.tag:
                raise FeedError(Condition.PRECONDITION_NOT_MET, "the entry has changed meanwhile")
            root = parse_stored(item.payload)
            if item.deleted or root.tag != atom.ENTRY:
                root = await asyncio.to_thread(new_entry, fields, _author(call, writing.node), None)
            else:
                await asyncio.to_thread(edit, root, fields_of(read_entry(item)), fields)
        else:
            replied = await self._replied(call, form)
            reference = None
            if replied is not None:
                path = entry_path(form.reply_feed or call.name, replied.item_id)
                reference = ReplyReference(replied.atom_id, f"{call.site_url}{path}")
            root = await asyncio.to_thread(new_entry, fields, _author(call, writing.node), reference)
        fit_markdown(root, writing.node.options.max_payload_size)
        expected = ItemPrecondition(frozenset({form.tag})) if call.item_id else None
        request = Publish(
            call.actor,
            self._service,
            call.name,
            call.item_id or None,
            draft_of(root),
            expected=expected,
            may_create=False,
        )
        await ask(self._change, request, Published)

    async def _read(self, call: HttpCall) -> tuple[_Form, FeedError | None]:
        """The form of a request, and what is wrong with its files. Its other fields come before them, so that nothing
        is lost that was typed. Raises FeedError and HttpError for a form that cannot be read."""
        if call.media_type != MULTIPART:
            return _read_form(await self._bodies.form(call), ()), None
        fields: list[tuple[str, str]] = []

        async def remember(pairs: Sequence[tuple[str, str]]) -> None:
            fields[:] = pairs

        try:
            parts = await read_parts(call, self._uploads, self._bodies.limit_bytes, remember)
        except FeedError as error:
            if not fields:
                raise
            return _read_form(fields, ()), error
        return _read_form(parts.fields, tuple(link for _, link in parts.files)), None

    async def _replied(self, call: HttpCall, form: _Form) -> Entry | None:
        """The entry that the one of a form answers. Raises FeedError if the user may not read it."""
        if not form.reply:
            return None
        feed = form.reply_feed or call.name
        if call.token is None or not covers(call.token, TokenScope.READ, feed):
            raise FeedError(Condition.FORBIDDEN, f"this takes a token with the scope read on the feed {feed!r}")
        return read_entry(await self._item(call, form.reply, feed))

    async def _page(
        self,
        call: HttpCall,
        writing: WritingShown,
        form: _Form,
        *,
        preview: bool = False,
        error: str = "",
        other: Item | None = None,
    ) -> Reply:
        frame = frame_of(call)
        try:
            preview_fields = await self._rendered(call, form) if preview else form.fields
        except FeedError as fault:
            preview_fields, preview, error = form.fields, False, fault.text
        limits = SHORT.below(preview_fields.title)
        preview_html = Markup(clean(preview_fields.content, frame.image, limits).html) if preview else None  # noqa: S704 - cleaned
        target = await self._replied(call, form)
        # In a thread: comparing long texts takes a time in which no other request would run.
        comparison = None
        if other is not None:
            theirs = (await self._opened(call, other))[0] if form.markdown else fields_of(read_entry(other))
            comparison = await asyncio.to_thread(_compared, frame.texts, theirs, form.fields)
            # The files of both: the user cannot add the file of somebody else, but can remove it.
            form = replace(form, fields=replace(form.fields, files=_united(form.fields.files, theirs.files)))
        body = frame.page(
            "authoring/templates/editor.html",
            **_place(call, writing.node),
            action_path=entry_path(call.name, call.item_id, WRITE),
            fields=form.fields,
            kinds=tuple(_KINDS),
            kind=MARKDOWN if form.markdown else form.fields.kind.value,
            files=[(write_query(_link_fields(file)), file) for file in form.fields.files],
            uploads=self._uploads.limit_bytes > 0 and writing.node.kind is NodeKind.FEED,
            tag=form.tag if other is None else item_tag(other),
            reply=form.reply,
            reply_feed=form.reply_feed,
            replied="" if target is None else target.title.plain,
            editing=bool(call.item_id),
            bookmark=bookmarklet.bookmarklet(
                f"{call.site_url}{entry_path(call.name, folder=WRITE)}",
                {LINK: bookmarklet.PAGE, TITLE: bookmarklet.TITLE},
            ),
            error=frame.texts.message(error),
            preview=preview_html,
            preview_title=preview_fields.title,
            preview_link=link_of(preview_fields.link),
            preview_pictures=pictures_of(frame, preview_fields.files),
            other=comparison,
            gone=other is not None and other.deleted,
        )
        reply = call.zipped(page_reply(body))
        if other is not None:
            return reply.with_status(HTTPStatus.CONFLICT)
        return reply.with_status(HTTPStatus.BAD_REQUEST) if error else reply

    def _delete_page(self, call: HttpCall, writing: WritingShown, item: Item, *, changed: bool = False) -> Reply:
        if item.deleted:
            raise FeedError(Condition.ITEM_NOT_FOUND, "the entry was deleted already")
        own = item.publisher == call.actor.bare_text
        if not writing.access.may_retract(own=own):
            raise FeedError(Condition.FORBIDDEN, "you may not delete this entry")
        frame, entry = frame_of(call), read_entry(item)
        body = frame.page(
            "authoring/templates/delete.html",
            **_place(call, writing.node),
            action_path=entry_path(call.name, call.item_id, DELETE),
            entry_title=entry.title.plain or item.id,
            tag=item_tag(item),
            changed=changed,
        )
        reply = call.zipped(page_reply(body))
        return reply.with_status(HTTPStatus.CONFLICT) if changed else reply

    async def _item(self, call: HttpCall, item_id: str = "", feed: str = "") -> Item:
        request = GetItem(call.actor, self._service, feed or call.name, item_id or call.item_id)
        return (await ask(self._handle, request, ItemShown)).item

    async def _rendered(self, call: HttpCall, form: _Form) -> WrittenFields:
        """The fields as they are stored: with HTML in place of Markdown. Raises FeedError(PAYLOAD_TOO_BIG)."""
        fields = form.fields
        if not form.markdown:
            return fields
        take_title = not fields.title.strip()
        markdown = await self._markdown.render(call.actor, fields.text, take_title=take_title)
        title = markdown.title if take_title else fields.title
        return replace(fields, title=title, text=markdown.html, kind=TextKind.HTML, markdown=markdown.source)

    async def _opened(self, call: HttpCall, item: Item) -> tuple[WrittenFields, bool]:
        """The fields of an item as they were written, and whether their text is Markdown.

        Other clients and other services change the HTML of an entry and leave the Markdown beside it. So only Markdown
        that still makes this HTML is shown.
        """
        fields = fields_of(read_entry(item))
        markdown = "" if item.deleted or not item.payload else markdown_of(parse_stored(item.payload))
        if markdown:
            try:
                html = (await self._markdown.render(call.actor, markdown, take_title=False)).html
            except FeedError:  # too long for Markdown: not written here
                return fields, False
            if html.strip() == fields.text.strip():
                return replace(fields, text=markdown), True
        return fields, False


# Errors in what was typed: the form is shown again.
_ABOUT_FIELDS = frozenset(
    {Condition.BAD_REQUEST, Condition.INVALID_PAYLOAD, Condition.PAYLOAD_TOO_BIG, Condition.NOT_ACCEPTABLE}
)


def _compared(texts: Texts, other: WrittenFields, own: WrittenFields) -> Mapping[str, object]:
    """The fields of the other version, and the differences of the text of the user from them."""
    pairs = {
        "title": (other.title, own.title),
        "text": (other.text, own.text.replace("\r\n", "\n")),
        "link": (other.link, own.link),
        "tags": (", ".join(other.tags), ", ".join(own.tags)),
    }
    differences = Differences(texts)
    return {
        name: {"theirs": theirs, "changes": differences.highlighted(theirs, mine), "same": theirs == mine}
        for name, (theirs, mine) in pairs.items()
    }


def _united(files: tuple[EntryLink, ...], others: tuple[EntryLink, ...]) -> tuple[EntryLink, ...]:
    """The files of both, each address once."""
    return tuple({file.href: file for file in (*others, *files)}.values())


def _link_fields(file: EntryLink) -> dict[str, str]:
    """A file as the form sends it back."""
    length = "" if file.length is None else str(file.length)
    return {"href": file.href, "type": file.type, "title": file.title, "length": length}


def _read_link(text: str) -> EntryLink:
    """The file of `_link_fields`. Raises FeedError(BAD_REQUEST)."""
    fields = dict(read_fields(text, 4))
    length = fields.get("length", "")
    return EntryLink(
        "enclosure",
        fields.get("href", ""),
        fields.get("type", ""),
        fields.get("title", ""),
        int(length) if _LENGTH.fullmatch(length) else None,
    )


def _read_form(pairs: Sequence[tuple[str, str]], uploads: tuple[EntryLink, ...]) -> _Form:
    """The form of these fields; `uploads` are added to the files that the user has kept. Raises FeedError."""
    files = tuple(_read_link(text) for name, text in pairs if name == KEPT_FILE)
    fields = unique([(name, text) for name, text in pairs if name != KEPT_FILE])
    kind = fields.get("kind", "")
    written = WrittenFields(
        fields.get("title", ""),
        fields.get("text", ""),
        _KINDS.get(kind, TextKind.TEXT),
        fields.get("link", ""),
        # The limit for tags is checked when the entry is published, so that the form can be shown again.
        tuple(tag.strip() for tag in fields.get("tags", "").split(",") if tag.strip()),
        (*files, *uploads),
    )
    return _Form(
        written,
        kind == MARKDOWN,
        fields.get("tag", ""),
        fields.get(REPLY, ""),
        fields.get(REPLY_FEED, ""),
        fields.get("action", ""),
    )


def _place(call: HttpCall, node: Node) -> dict[str, object]:
    return {"feed_title": title_of(node), "feed": feed_path(call.name)}


def _author(call: HttpCall, node: Node) -> str:
    """The author of a new entry, "" in a feed that hides who publishes."""
    return call.actor.bare_text if node.options.shows_publisher else ""


def _check_overwrite(call: HttpCall, writing: WritingShown, item: Item) -> None:
    writing.access.check_publish()
    if not writing.access.may_overwrite(own=item.publisher == call.actor.bare_text):
        raise FeedError(Condition.FORBIDDEN, "you may not change this entry")
