"""The tables of the web administration: a page for each list of the service, with its forms (`service.resources`).

The requests are those of the lists everywhere else, so the same rules decide. Every form is sent by POST and redirects
to a page that shows the result. One response cannot redirect: that with a new token, which is shown only once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from smartfeeds.core.times import parse_datetime
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import ADMIN, ADMIN_FEEDS, entry_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.administration.log_list import LOG
from smartfeeds.features.administration.pages import (
    FEED,
    FEED_FORM,
    OVERVIEW,
    PageContext,
    WebAdmin,
    query_of,
    read_view,
    shared,
    with_problem,
)
from smartfeeds.features.pages.frame import Frame, frame_of, page_reply
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import STATUSES
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import page_path
from smartfeeds.http.replies import Reply
from smartfeeds.http.resources import caller_of, path_of, read_page
from smartfeeds.http.router import Handler
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.service.resources import Action, Column, Resource, RowPage

ROWS = 50  # in a page


class Tables:
    """Handles the tables and their forms. `tabs` are those of `PageContext`."""

    def __init__(self, tools: SiteTools, tabs: tuple[tuple[str, str], ...]) -> None:
        self._tools = tools
        self._tabs = tabs

    async def show(self, resource: Resource[Any], call: HttpCall) -> Reply:
        """A page with a table. Raises FeedError."""
        return await self._page(resource, call, await self._view(call))

    async def submit(self, resource: Resource[Any], call: HttpCall) -> Reply:
        """Performs the action of a form. Raises HttpError."""
        fields: Mapping[str, str] = await self._tools.bodies.fields(call)
        action = next((action for action in _actions(resource) if action.name == fields.get("action", "")), None)
        if action is None:
            raise FeedError(Condition.BAD_REQUEST, "the form has no known action; load the page again")
        if action.form is not None:
            fields = {name: text.strip() for name, text in fields.items() if text.strip()}
        try:
            outcome = await action.perform(caller_of(call, self._tools.perform, self._tools.domain), fields)
        except FeedError as error:
            view = with_problem(call, await self._view(call), error)
            return (await self._page(resource, call, view)).with_status(STATUSES[error.condition])
        if outcome.secret:
            page = await self._page(resource, call, await self._view(call), outcome.secret)
            return page.with_status(HTTPStatus.CREATED)
        return call.see_other(f"{outcome.path or call.path}?done={outcome.done}")

    async def _view(self, call: HttpCall) -> PageContext:
        return await read_view(self._tools.handle, self._tools.domain, call, self._tabs)

    async def _page(self, resource: Resource[Any], call: HttpCall, view: PageContext, secret: str = "") -> Reply:
        after = query_of(call).get("after", "")
        page = await read_page(resource, caller_of(call, self._tools.handle, self._tools.domain), ROWS, after)
        forms = ((action, action.form(call.actor, view.standing)) for action in _actions(resource) if action.form)
        action, form = next(forms, (None, None))
        is_admin = view.standing.admin
        buttons = [action for action in _actions(resource) if action.button and (is_admin or not action.for_admins)]
        return call.zipped(
            page_reply(
                frame_of(call).page(
                    "administration/templates/admin_table.html",
                    **shared(view),
                    table=resource.table,
                    columns=_columns(resource),
                    rows=_rows(frame_of(call), resource, page, buttons),
                    total=page.total,
                    first=not after,
                    next_path=page_path(call.path, {}, after=page.after) if page.after else "",
                    buttons=buttons,
                    action=action,
                    form=form,
                    secret=secret,
                )
            )
        )


def _actions(resource: Resource[Any]) -> list[Action]:
    """The actions that pages have."""
    return [action for action in resource.actions if action.form or action.button]


def _columns(resource: Resource[Any]) -> tuple[Column[Any], ...]:
    assert resource.table is not None  # `pages_of` leaves out the others; so below
    return resource.pick(resource.table.columns)


def _rows(frame: Frame, resource: Resource[Any], page: RowPage, buttons: Sequence[Action]) -> list[dict[str, object]]:
    assert resource.table is not None
    return [
        {
            "cells": [(column, _cell(frame, column, row.get(column.key))) for column in _columns(resource)],
            "path": entry_path(str(row["node"]), folder=ADMIN_FEEDS) if resource.table.links else "",
            "buttons": [(button, row.get(button.key)) for button in buttons],
        }
        for row in page.rows
    ]


def _cell(frame: Frame, column: Column[Any], value: object) -> object:
    if column.kind == "word" or (column.kind == "time" and parse_datetime(str(value)) is None):
        return frame.texts.message(str(value or ""))
    if column.kind == "time":
        return parse_datetime(str(value))
    return "" if value is None else value


@dataclass(frozen=True, slots=True)
class AdminPages:
    """The handlers of the tables, and those of the other pages."""

    tables: Tables
    web: WebAdmin


# fmt: off
_ROUTES: tuple[Route[AdminPages], ...] = (
    Route("GET", "/admin/", "admin", OVERVIEW, lambda h: h.web.overview),
    Route("GET", "/admin/feeds/{name}/", "admin", FEED, lambda h: h.web.feed),
    Route("POST", "/admin/feeds/{name}/", "admin", FEED_FORM, lambda h: h.web.submit_feed),
)
# fmt: on


def pages_of(resources: tuple[Resource[Any], ...]) -> HttpSide[AdminPages]:
    """Returns the pages for people: those of the lists that the service has, with their forms, and the others."""
    tabs = tabs_of(resources)

    def handlers(tools: SiteTools) -> AdminPages:
        web = WebAdmin(tools.handle, tools.perform, tools.domain, tools.bodies, tools.now_us, tabs)
        return AdminPages(Tables(tools, tabs), web)

    routes = tuple(route for resource in resources if resource.table for route in _routes(resource))
    return HttpSide((*routes, *_ROUTES), handlers)


def tabs_of(resources: tuple[Resource[Any], ...]) -> tuple[tuple[str, str], ...]:
    """Returns the paths and titles of the lists that belong to no feed. That of the log is for admins alone, and the
    template has it."""
    return tuple(
        (path_of(resource, ADMIN), resource.table.title)
        for resource in resources
        if resource.table and not resource.of_node and resource is not LOG
    )


def _routes(resource: Resource[Any]) -> list[Route[AdminPages]]:
    assert resource.table is not None
    path, title, scope = path_of(resource, ADMIN), resource.table.title, TokenScope.ADMIN
    operation = page_for_people(f"admin-{resource.name}", f"Web administration: {title}", scope=scope)
    routes = [Route("GET", path, "admin", operation, partial(_show, resource))]
    if _actions(resource):
        name, summary = f"admin-{resource.name}-form", f"Web administration: the forms of {title}"
        operation = page_for_people(name, summary, form=True, scope=scope)
        routes.append(Route("POST", path, "admin", operation, partial(_submit, resource)))
    return routes


def _show(resource: Resource[Any], pages: AdminPages) -> Handler:
    return partial(pages.tables.show, resource)


def _submit(resource: Resource[Any], pages: AdminPages) -> Handler:
    return partial(pages.tables.submit, resource)
