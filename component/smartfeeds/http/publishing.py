"""Publishing over HTTP: items put, posted and deleted, feeds made and deleted (SF-009, SF-013, SF-110).

A bearer token acts as its JID through the use cases of XMPP, as far as its scope goes. What has begun is finished when
the client goes away meanwhile: a change that is stored is pushed.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from smartfeeds.core.text import is_xml_text
from smartfeeds.core.tokens import Scope
from smartfeeds.core.urls import EntryPath, feed_path, read_feed_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.http import negotiation as n
from smartfeeds.http.bodies import Bodies
from smartfeeds.http.calls import Call
from smartfeeds.http.entries import OF_ALL, OF_ITEM, Entries, Handle, entry_url, expected_of, path_of
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import Form
from smartfeeds.http.queries import read_flag
from smartfeeds.http.replies import Reply
from smartfeeds.service.feeds import Answer
from smartfeeds.service.preconditions import item_tag
from smartfeeds.service.requests import (
    CreateNode,
    DeleteNode,
    ItemShown,
    Publish,
    Published,
    Purge,
    Request,
    Retract,
)

_CHANGED = {"Cache-Control": "no-store", "Access-Control-Allow-Origin": "*"}
_EXPOSED = {**_CHANGED, "Access-Control-Expose-Headers": "ETag, Location"}


class Publishing:
    """Answers PUT, POST and DELETE of items and feeds."""

    def __init__(self, handle: Handle, service: str, bodies: Bodies, entries: Entries) -> None:
        self._handle = handle
        self._service = service
        self._bodies = bodies
        self._entries = entries
        self._working: set[asyncio.Task[Answer]] = set()

    async def stop(self) -> None:
        """Returns when everything that was begun is finished."""
        await asyncio.gather(*self._working, return_exceptions=True)

    async def put_item(self, call: Call) -> Reply:
        """Makes or replaces the item of this id (XEP-0060 7.1)."""
        path = _writable(call, Scope.PUBLISH)
        if not path.item_id:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"this takes {OF_ALL}", Allow=OF_ALL)
        return await self._publish(call, path)

    async def post_item(self, call: Call) -> Reply:
        """Publishes a new item, whose id the service makes."""
        path = _writable(call, Scope.PUBLISH)
        if path.item_id:
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, f"this takes {OF_ITEM}", Allow=OF_ITEM)
        return await self._publish(call, path)

    async def delete(self, call: Call) -> Reply:
        """Retracts an item (XEP-0060 7.2), or all items of a feed (8.5)."""
        path = path_of(call)
        _writable(call, Scope.PUBLISH if path.item_id else Scope.ADMIN)
        if path.item_id:
            expected = expected_of(call)
            await self.change(Retract(call.actor, self._service, path.name, path.item_id, expected=expected))
        else:
            await self.change(Purge(call.actor, self._service, path.name))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)

    async def create_feed(self, call: Call) -> Reply:
        """Makes a feed with the options in the body (XEP-0060 8.1)."""
        name = _feed_of(call)
        await self.change(CreateNode(call.actor, self._service, name, await self._bodies.options(call)))
        headers: Mapping[str, str] = {**_EXPOSED, "Location": f"{call.origin}{feed_path(name)}"}
        return Reply(status=HTTPStatus.CREATED, headers=headers)

    async def delete_feed(self, call: Call) -> Reply:
        """Deletes a feed with all its items (XEP-0060 8.4)."""
        await self.change(DeleteNode(call.actor, self._service, _feed_of(call)))
        return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)

    async def _publish(self, call: Call, path: EntryPath) -> Reply:
        expected = expected_of(call) if path.item_id else None
        sync = read_flag(call.query, "sync")
        draft, form = await self._bodies.draft(call, path.item_id)
        request = Publish(
            call.actor,
            self._service,
            path.name,
            path.item_id or None,
            draft,
            expected=expected,
            # Making a feed takes the scope admin, by whatever way.
            may_create=call.token is not None and call.token.scope >= Scope.ADMIN,
        )
        published = await self.change(request)
        assert isinstance(published, Published)
        if not published.tag:
            return Reply(status=HTTPStatus.NO_CONTENT, headers=_CHANGED)
        path = replace(path, item_id=published.item_id)
        headers = {**_EXPOSED, "Location": entry_url(call, path)} if published.created else dict(_EXPOSED)
        shown = await self._stored(call, path, published, sync=sync)
        if shown is None:
            return Reply(status=HTTPStatus.CREATED if published.created else HTTPStatus.NO_CONTENT, headers=headers)
        stored = self._entries.reply(call, shown, _answered_as(call, form), sync=sync)
        headers = {**stored.headers, **headers, "Content-Location": entry_url(call, path)}
        return Reply(
            stored.body, stored.media_type, HTTPStatus.CREATED if published.created else HTTPStatus.OK, headers
        )

    async def _stored(self, call: Call, path: EntryPath, published: Published, *, sync: bool) -> ItemShown | None:
        """The item as it was stored; None where its publisher may not read it, or it has changed again."""
        try:
            shown = await self._entries.shown(call, path, sync=sync)
        except FeedError:
            return None
        return shown if item_tag(shown.item) == published.tag else None

    async def change(self, request: Request) -> Answer:
        """Does it, also where nobody waits for the answer any more."""
        task = asyncio.ensure_future(self._handle(request))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)


def _writable(call: Call, scope: Scope) -> EntryPath:
    """What is to be changed, by somebody who may. Raises FeedError."""
    path = path_of(call)
    check_scope(call, scope, path.name)
    if not is_xml_text(path.name) or not is_xml_text(path.item_id):
        raise FeedError(Condition.BAD_REQUEST, "names and ids hold no characters that XML cannot carry")
    return path


def _feed_of(call: Call) -> str:
    path = read_feed_path(call.path, frozenset())
    if path is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, f"a feed is at {feed_path('NAME')}, with a slash at its end")
    check_scope(call, Scope.ADMIN, path.name)
    if not is_xml_text(path.name):
        raise FeedError(Condition.BAD_REQUEST, "names hold no characters that XML cannot carry")
    return path.name


def check_scope(call: Call, scope: Scope, name: str) -> None:
    """Raises FeedError unless a token came along that has this scope on this feed."""
    if call.token is None:
        raise FeedError(Condition.NOT_AUTHORIZED, f"this takes a bearer token with the scope {scope.text} on this feed")
    call.require(scope, name)


def _answered_as(call: Call, sent: Form) -> Form:
    """The form that the answer is wanted in; what was sent is what is wanted where nothing is said."""
    offered = (sent, *(form for form in n.OF_ENTRY if form is not sent))
    return n.choose(call.header("Accept"), offered) or sent
