"""The web administration under `/admin/`: its overview, and the options of a feed. The tables are in `tables.py`.

It is for admins of the service, and for owners with their own feeds. The requests are those of programs, so the same
rules decide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from smartfeeds.core.options import LISTS, OPTIONS, FieldType, FormFields, NodeOptions, Option, OptionLimits
from smartfeeds.core.options import PUBSUB as PREFIX
from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import ADMIN_FEEDS, ADMIN_MEMBERS, ADMIN_SUBSCRIPTIONS, entry_path, feed_path
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.administration.plots import BAR_WIDTH, HEIGHT, buckets_of, numbers_of, plots_of
from smartfeeds.features.administration.process import GetStatistics, Statistics
from smartfeeds.features.pages.frame import Frame, frame_of, page_reply
from smartfeeds.features.pages.problem_page import prefers_page
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import STATUSES, HttpError
from smartfeeds.http.operations import page_for_people
from smartfeeds.http.queries import read_parameters
from smartfeeds.http.replies import Reply
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.nodes import options_tag
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    DeleteNode,
    GetConfiguration,
)
from smartfeeds.service.resources import Field
from smartfeeds.service.standing import GetStanding, Standing
from smartfeeds.texts import N_

# Options that have one possible value.
_FIXED = frozenset({"purge_offline", "node_type"})
_MAIN = ("title", "description", "language", "access_model", "publish_model", "contact")
# The forms over XMPP have longer labels, because clients show them without a context.
_LABELS = {"title": N_("Title"), "description": N_("Description")}
_CHOICES = {
    "open": N_("Everybody"),
    "authorize": N_("Users whom an owner has approved"),
    "presence": N_("Contacts of the service"),
    "whitelist": N_("Members only"),
    "no": N_("No"),
    "approval": N_("After approval"),
    "publishers": N_("Owners and publishers"),
    "subscribers": N_("Subscribers, too"),
}
SHOWN_OPTIONS = tuple(dict.fromkeys(name for name in (*_MAIN, *OPTIONS) if name not in _FIXED))
OPTION_LABELS = {name: _LABELS.get(name, OPTIONS[name].label) for name in SHOWN_OPTIONS}


@dataclass(frozen=True, slots=True)
class PageContext:
    """The context of a page of the administration: the rights of its reader, its path, and the result of the last
    action. `done` is the message of a success, `problem` that of a failure. `tabs` are the paths and titles of the
    lists."""

    standing: Standing
    here: str
    tabs: tuple[tuple[str, str], ...]
    name: str = ""
    done: str = ""
    problem: str = ""


def feed_page(
    frame: Frame,
    view: PageContext,
    options: NodeOptions,
    limits: OptionLimits,
    tag: str,
    submitted: Mapping[str, tuple[str, ...]] | None = None,
) -> bytes:
    """The options of a node as a form, and its deletion. `submitted` are the values of a form that was refused."""
    fields = {}
    for name in SHOWN_OPTIONS:
        values = options.values_of(OPTIONS[name])
        if submitted is not None:
            values = submitted.get(PREFIX + name, values)
        fields[name] = _field(name, OPTIONS[name], values, limits)
    return frame.page(
        "administration/templates/admin_feed.html",
        **shared(view),
        main=[fields[name] for name in _MAIN],
        more=[field for name, field in fields.items() if name not in _MAIN],
        tag=tag,
        page_path=feed_path(view.name),
    )


def overview_page(frame: Frame, view: PageContext, statistics: Statistics | None, now_us: int) -> bytes:
    """The first page: for admins the counts, the rates and the plots of the last 24 hours."""
    buckets = [] if statistics is None else buckets_of(statistics.history, now_us)
    return frame.page(
        "administration/templates/admin.html",
        **shared(view),
        statistics=statistics,
        plots=plots_of(buckets),
        numbers=numbers_of(buckets),
        height=HEIGHT,
        bar_width=round(BAR_WIDTH, 2),
    )


def form_of_options(fields: Mapping[str, str]) -> FormFields:
    """The configuration that a submitted form of `feed_page` means: a flag that was not sent is off."""
    return {PREFIX + name: _submitted(OPTIONS[name], fields.get(name)) for name in SHOWN_OPTIONS}


def _submitted(option: Option[object], text: str | None) -> tuple[str, ...]:
    if option.type is FieldType.BOOLEAN:
        return ("false",) if text is None else ("true",)
    lines = (text or "").replace("\r\n", "\n")
    if option.type in LISTS:
        return tuple(line.strip() for line in lines.split("\n") if line.strip())
    return (lines,)


def _field(name: str, option: Option[object], values: tuple[str, ...], limits: OptionLimits) -> Field:
    label, choices = OPTION_LABELS[name], option.choices(limits)
    if option.type is FieldType.BOOLEAN:
        return Field(name, label, "flag", "true" if values == ("true",) else "")
    if choices:
        return Field(
            name, label, "choice", "".join(values), tuple((choice, _CHOICES.get(choice, choice)) for choice in choices)
        )
    if option.type in LISTS:
        is_jid = option.type is FieldType.JID_MULTI
        hint = N_("One XMPP address in each line") if is_jid else N_("One in each line")
        return Field(name, label, "lines", "\n".join(values), hint=hint)
    return Field(name, label, "text", "".join(values))


def shared(view: PageContext) -> dict[str, object]:
    """The values that every page of the administration needs."""
    return {
        "view": view,
        "node_paths": {
            "options": entry_path(view.name, folder=ADMIN_FEEDS),
            "members": entry_path(view.name, folder=ADMIN_MEMBERS),
            "subscriptions": entry_path(view.name, folder=ADMIN_SUBSCRIPTIONS),
        }
        if view.name
        else {},
    }


_RIGHT = TokenScope.ADMIN
# The messages after a form, by the parameter `done`.
DONE: Mapping[str, str] = {
    "created": N_("Created."),
    "saved": N_("Saved."),
    "deleted": N_("Deleted."),
    "removed": N_("Removed."),
    "revoked": N_("Revoked."),
    "retried": N_("The next attempt is made now."),
    "polled": N_("The feed is read again now."),
}


OVERVIEW = page_for_people("admin", "Web administration: overview", scope=_RIGHT)
FEED = page_for_people("admin-feed", "Web administration: options of a feed", scope=_RIGHT)
FEED_FORM = page_for_people(
    "admin-feed-form", "Web administration: configures or deletes a feed", form=True, scope=_RIGHT
)


class WebAdmin:
    """Handles the pages and their forms. `service` is the address of the service, and `now_us` returns microseconds;
    `change` performs a request even if the client disconnects. `tabs` are those of `PageContext`."""

    def __init__(
        self,
        handle: Handle,
        change: Handle,
        service: str,
        bodies: BodyReader,
        now_us: Callable[[], int],
        tabs: tuple[tuple[str, str], ...],
    ) -> None:
        self.handle = handle
        self.change = change
        self.service = service
        self._bodies = bodies
        self._now_us = now_us
        self._tabs = tabs

    async def overview(self, call: HttpCall) -> Reply:
        """The first page. Raises FeedError."""
        view = await read_view(self.handle, self.service, call, self._tabs)
        statistics = None
        if view.standing.admin:
            statistics = await ask(self.handle, GetStatistics(call.actor, self.service), Statistics)
        return call.zipped(page_reply(overview_page(frame_of(call), view, statistics, self._now_us())))

    async def feed(self, call: HttpCall) -> Reply:
        """The options of a node. Raises FeedError."""
        view = await read_view(self.handle, self.service, call, self._tabs)
        return call.zipped(page_reply(_feed_page(call, view, await self._configuration(call))))

    async def submit_feed(self, call: HttpCall) -> Reply:
        """Configures or deletes a node. Raises FeedError."""
        fields = await self._bodies.fields(call)
        view = await read_view(self.handle, self.service, call, self._tabs)
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


async def read_view(handle: Handle, service: str, call: HttpCall, tabs: tuple[tuple[str, str], ...]) -> PageContext:
    """Returns the context of a page for its reader. Raises FeedError(FORBIDDEN) for users who administer nothing."""
    standing = await ask(handle, GetStanding(call.actor, service), Standing)
    if not (standing.admin or standing.owner or standing.creator):
        raise FeedError(Condition.FORBIDDEN, "you own no feed, and you are no admin of the service")
    done = DONE.get(query_of(call).get("done", ""), "") if call.method in ("GET", "HEAD") else ""
    return PageContext(standing, call.path, tabs, call.name, frame_of(call).texts.say(done) if done else "")


def query_of(call: HttpCall) -> dict[str, str]:
    """The parameters of a page."""
    return read_parameters(call.query, ("after", "done"))


def _feed_page(
    call: HttpCall, view: PageContext, configuration: Configuration, form: FormFields | None = None
) -> bytes:
    options = configuration.options
    return feed_page(frame_of(call), view, options, configuration.limits, options_tag(options), form)


def with_problem(call: HttpCall, view: PageContext, error: FeedError) -> PageContext:
    """The view with the message of an error. Raises the error if the client does not prefer a page."""
    if isinstance(error, HttpError) or not prefers_page(call.header("Accept")):
        raise error
    return replace(view, problem=frame_of(call).texts.message(error.text or error.condition.value))
