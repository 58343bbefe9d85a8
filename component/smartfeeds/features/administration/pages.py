"""The web administration under `/admin/`: its overview, and the options of a feed. The tables are in `tables.py`.

It is for admins of the service, and for owners with their own feeds. The requests are those of programs, so the same
rules decide.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from smartfeeds.core.options import FormFields
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import ADMIN_FEEDS
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.administration.page_lists import View, feed_page, form_of_options, overview_page
from smartfeeds.features.administration.process import GetStatistics, Statistics
from smartfeeds.features.pages.frame import frame_of, page_reply
from smartfeeds.features.pages.problem_page import prefers_page
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import STATUSES, HttpError
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.preconditions import options_tag
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    DeleteNode,
    GetConfiguration,
)
from smartfeeds.service.standing import GetStanding, Standing
from smartfeeds.texts import N_

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
        view = await read_view(self.handle, self.service, call)
        statistics = None
        if view.standing.admin:
            statistics = await ask(self.handle, GetStatistics(call.actor, self.service), Statistics)
        return call.zipped(page_reply(overview_page(frame_of(call), view, statistics, self._now_us())))

    async def feed(self, call: HttpCall) -> Reply:
        """The options of a node. Raises FeedError."""
        view = await read_view(self.handle, self.service, call)
        return call.zipped(page_reply(_feed_page(call, view, await self._configuration(call))))

    async def submit_feed(self, call: HttpCall) -> Reply:
        """Configures or deletes a node. Raises FeedError."""
        fields = await self._bodies.fields(call)
        view = await read_view(self.handle, self.service, call)
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
            view = with_problem(call, view, error)
            # The values of the reader stay in the form, and the next attempt replaces what somebody else has saved.
            return page_reply(_feed_page(call, view, configuration, form)).with_status(STATUSES[error.condition])
        return call.see_other(f"{call.path}?done=saved")

    async def _configuration(self, call: HttpCall) -> Configuration:
        return await ask(self.handle, GetConfiguration(call.actor, self.service, call.name), Configuration)


async def read_view(handle: Handle, service: str, call: HttpCall) -> View:
    """What a page of the administration shows of its reader. Raises FeedError(FORBIDDEN) for users who administer
    nothing."""
    standing = await ask(handle, GetStanding(call.actor, service), Standing)
    if not (standing.admin or standing.owner or standing.creator):
        raise FeedError(Condition.FORBIDDEN, "you own no feed, and you are no admin of the service")
    done = DONE.get(query_of(call).get("done", ""), "") if call.method in ("GET", "HEAD") else ""
    return View(standing, call.path, call.name, frame_of(call).texts.say(done) if done else "")


def query_of(call: HttpCall) -> dict[str, str]:
    """The parameters of a page."""
    return read_parameters(call.query, ("after", "done"))


def _feed_page(call: HttpCall, view: View, configuration: Configuration, form: FormFields | None = None) -> bytes:
    options = configuration.options
    return feed_page(frame_of(call), view, options, configuration.limits, options_tag(options), form)


def with_problem(call: HttpCall, view: View, error: FeedError) -> View:
    """The view with the message of an error. Raises the error if the client does not prefer a page."""
    if isinstance(error, HttpError) or not prefers_page(call.header("Accept")):
        raise error
    return replace(view, problem=frame_of(call).texts.message(error.text or error.condition.value))
