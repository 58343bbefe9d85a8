"""The web administration under `/admin/`: for admins of the service, and for owners with their own feeds.

The requests are those of `http.py`, so the same rules decide. Every form is sent by POST and redirects
to a page that shows the result. One response cannot redirect: that with a new token, which is shown only once.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from smartfeeds.core.options import FormFields
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import ADMIN_FEEDS
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.administration.lists import (
    RowList,
    read_rows,
)
from smartfeeds.features.administration.page_lists import (
    Form,
    Table,
    View,
    feed_page,
    form_of_options,
    overview_page,
    table_page,
)
from smartfeeds.features.administration.process import GetStatistics, Statistics
from smartfeeds.features.pages.frame import frame_of, page_reply
from smartfeeds.features.pages.problem_page import prefers_page
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import STATUSES, HttpError
from smartfeeds.http.operations import Operation, page_for_people
from smartfeeds.http.queries import page_path, read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.preconditions import options_tag
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    DeleteNode,
    GetConfiguration,
)
from smartfeeds.service.resources import RowPage
from smartfeeds.service.standing import GetStanding, Standing
from smartfeeds.texts import N_

ROWS = 50  # in a page
_RIGHT = TokenScope.ADMIN
# The messages after a form, by the parameter `done`.
DONE: Mapping[str, str] = {
    "created": N_("Created."),
    "saved": N_("Saved."),
    "deleted": N_("Deleted."),
    "removed": N_("Removed."),
    "revoked": N_("Revoked."),
    "retried": N_("The next attempt is made now."),
}
Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What follows an action: the key of its message and the path of the next page ("" for the same one), or a secret
    text, which no other page can show."""

    done: str = ""
    path: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A page with a table. `read` returns the rows behind a position, and `actions` has the function for each value of
    the form field `action`."""

    key: str
    path: str
    table: Table
    read: Callable[["WebAdmin", HttpCall, str], Awaitable[RowPage]]
    actions: Mapping[str, Callable[["WebAdmin", HttpCall, Fields], Awaitable[Outcome]]]
    form: Callable[["WebAdmin", HttpCall, Standing], Form | None] = lambda _admin, _call, _standing: None

    @property
    def get(self) -> Operation:
        """The operation that shows the page."""
        return page_for_people(f"admin-{self.key}", f"Web administration: {self.table.title}", scope=_RIGHT)

    @property
    def post(self) -> Operation:
        """The operation of the forms of the page."""
        summary = f"Web administration: the forms of {self.table.title}"
        return page_for_people(f"admin-{self.key}-form", summary, form=True, scope=_RIGHT)


OVERVIEW = page_for_people("admin", "Web administration: overview", scope=_RIGHT)
FEED = page_for_people("admin-feed", "Web administration: options of a feed", scope=_RIGHT)
FEED_FORM = page_for_people(
    "admin-feed-form", "Web administration: configures or deletes a feed", form=True, scope=_RIGHT
)


class WebAdmin:
    """Handles the pages and their forms. `service` is the address of the service, and `now_us` returns microseconds;
    `change` performs a request even if the client disconnects."""

    def __init__(
        self,
        handle: Handle,
        change: Handle,
        service: str,
        bodies: BodyReader,
        now_us: Callable[[], int],
    ) -> None:
        self.handle = handle
        self.change = change
        self.service = service
        self._bodies = bodies
        self._now_us = now_us

    async def overview(self, call: HttpCall) -> Reply:
        """The first page. Raises FeedError."""
        view = await self._view(call)
        statistics = None
        if view.standing.admin:
            statistics = await ask(self.handle, GetStatistics(call.actor, self.service), Statistics)
        return call.zipped(page_reply(overview_page(frame_of(call), view, statistics, self._now_us())))

    async def show(self, section: Section, call: HttpCall) -> Reply:
        """A page with a table. Raises FeedError."""
        return await self._table(section, call, await self._view(call))

    async def submit(self, section: Section, call: HttpCall) -> Reply:
        """Performs the action of a form. Raises HttpError."""
        fields = await self._bodies.fields(call)
        action = section.actions.get(fields.get("action", ""))
        if action is None:
            raise FeedError(Condition.BAD_REQUEST, "the form has no known action; load the page again")
        try:
            outcome = await action(self, call, fields)
        except FeedError as error:
            view = _with_problem(call, await self._view(call), error)
            return (await self._table(section, call, view)).with_status(STATUSES[error.condition])
        if outcome.secret:
            table = await self._table(section, call, await self._view(call), outcome.secret)
            return table.with_status(HTTPStatus.CREATED)
        return call.see_other(f"{outcome.path or call.path}?done={outcome.done}")

    async def feed(self, call: HttpCall) -> Reply:
        """The options of a node. Raises FeedError."""
        view = await self._view(call)
        return call.zipped(page_reply(_feed_page(call, view, await self._configuration(call))))

    async def submit_feed(self, call: HttpCall) -> Reply:
        """Configures or deletes a node. Raises FeedError."""
        fields = await self._bodies.fields(call)
        view = await self._view(call)
        configuration = await self._configuration(call)
        form = None
        try:
            if fields.get("action") == "delete":
                if fields.get("confirm") != call.name:
                    raise FeedError(Condition.BAD_REQUEST, "to delete the feed, type its name exactly as it is shown")
                await self.change(DeleteNode(call.actor, self.service, call.name))
                return call.see_other(f"{ADMIN_FEEDS}?done=deleted")
            form = form_of_options(fields)
            expected = frozenset({fields.get("tag", "")})
            await self.change(Configure(call.actor, self.service, call.name, form, expected))
        except FeedError as error:
            view = _with_problem(call, view, error)
            # The values of the reader stay in the form, and the next attempt replaces what somebody else has saved.
            return page_reply(_feed_page(call, view, configuration, form)).with_status(STATUSES[error.condition])
        return call.see_other(f"{call.path}?done=saved")

    async def rows(self, rows: RowList, call: HttpCall, after: str) -> RowPage:
        """A page of rows of a list. Raises FeedError."""
        return await read_rows(self.handle, rows, call.actor, self.service, call.name, ROWS, after)

    async def _configuration(self, call: HttpCall) -> Configuration:
        return await ask(self.handle, GetConfiguration(call.actor, self.service, call.name), Configuration)

    async def _view(self, call: HttpCall) -> View:
        """Raises FeedError(FORBIDDEN) for users who administer nothing."""
        standing = await ask(self.handle, GetStanding(call.actor, self.service), Standing)
        if not (standing.admin or standing.owner or standing.creator):
            raise FeedError(Condition.FORBIDDEN, "you own no feed, and you are no admin of the service")
        done = DONE.get(_query(call).get("done", ""), "") if call.method in ("GET", "HEAD") else ""
        return View(standing, call.path, call.name, frame_of(call).texts.say(done) if done else "")

    async def _table(self, section: Section, call: HttpCall, view: View, secret: str = "") -> Reply:
        after = _query(call).get("after", "")
        page, action = await section.read(self, call, after), section.table.row_action
        table = replace(
            section.table,
            rows=page.rows,
            total=page.total,
            next_path=page_path(call.path, {}, after=page.after) if page.after else "",
            first=not after,
            form=section.form(self, call, view.standing),
            row_action=None if action is not None and action.for_admins and not view.standing.admin else action,
            secret=secret,
        )
        return call.zipped(page_reply(table_page(frame_of(call), view, table)))


def _query(call: HttpCall) -> dict[str, str]:
    return read_parameters(call.query, ("after", "done"))


def _feed_page(call: HttpCall, view: View, configuration: Configuration, form: FormFields | None = None) -> bytes:
    options = configuration.options
    return feed_page(frame_of(call), view, options, configuration.limits, options_tag(options), form)


def _with_problem(call: HttpCall, view: View, error: FeedError) -> View:
    """The view with the message of an error. Raises the error if the client does not prefer a page."""
    if isinstance(error, HttpError) or not prefers_page(call.header("Accept")):
        raise error
    return replace(view, problem=frame_of(call).texts.message(error.text or error.condition.value))
