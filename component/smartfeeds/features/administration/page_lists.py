"""The pages of the web administration beside its tables: the options of a feed, and the plots of the last 24 hours."""

from collections.abc import Mapping
from dataclasses import dataclass

from smartfeeds.core.options import OPTIONS, FieldType, FormFields, NodeOptions, Option, OptionLimits
from smartfeeds.core.options import PUBSUB as PREFIX
from smartfeeds.core.urls import ADMIN_FEEDS, ADMIN_MEMBERS, ADMIN_SUBSCRIPTIONS, entry_path, feed_path
from smartfeeds.features.administration.plots import BAR_WIDTH, HEIGHT, WIDTH, buckets_of, plots_of
from smartfeeds.features.administration.process import Statistics
from smartfeeds.features.pages.frame import Frame
from smartfeeds.service.resources import Field
from smartfeeds.service.standing import Standing
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
    "publishers": N_("Owners and publishers"),
    "subscribers": N_("Subscribers, too"),
}
SHOWN_OPTIONS = tuple(dict.fromkeys(name for name in (*_MAIN, *OPTIONS) if name not in _FIXED))
OPTION_LABELS = {name: _LABELS.get(name, OPTIONS[name].label) for name in SHOWN_OPTIONS}


@dataclass(frozen=True, slots=True)
class View:
    """What the pages of the administration share: who reads them, where the reader is, and what has just happened.
    `done` is the message of a success, `problem` that of a failure."""

    standing: Standing
    here: str
    name: str = ""
    done: str = ""
    problem: str = ""


def feed_page(
    frame: Frame,
    view: View,
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


def overview_page(frame: Frame, view: View, statistics: Statistics | None, now_us: int) -> bytes:
    """The first page: for admins the counts, the rates and the plots of the last 24 hours."""
    buckets = [] if statistics is None else buckets_of(statistics.history, now_us)
    return frame.page(
        "administration/templates/admin.html",
        **shared(view),
        statistics=statistics,
        plots=plots_of(buckets),
        buckets=list(reversed(buckets)),
        width=WIDTH,
        height=HEIGHT,
        bar_width=BAR_WIDTH,
    )


def form_of_options(fields: Mapping[str, str]) -> FormFields:
    """The configuration that a submitted form of `feed_page` means: a flag that was not sent is off."""
    return {PREFIX + name: _submitted(OPTIONS[name], fields.get(name)) for name in SHOWN_OPTIONS}


def _submitted(option: Option[object], text: str | None) -> tuple[str, ...]:
    if option.type is FieldType.BOOLEAN:
        return ("false",) if text is None else ("true",)
    lines = (text or "").replace("\r\n", "\n")
    if option.type is FieldType.JID_MULTI:
        return tuple(line.strip() for line in lines.split("\n") if line.strip())
    return (lines,)


def _field(name: str, option: Option[object], values: tuple[str, ...], limits: OptionLimits) -> Field:
    label, choices = OPTION_LABELS[name], option.choices(limits)
    if option.type is FieldType.BOOLEAN:
        return Field(name, label, "flag", "true" if values == ("true",) else "")
    if choices:
        return Field(name, label, "choice", "".join(values), tuple((one, _CHOICES.get(one, one)) for one in choices))
    if option.type is FieldType.JID_MULTI:
        return Field(name, label, "lines", "\n".join(values), hint=N_("One XMPP address in each line"))
    return Field(name, label, "text", "".join(values))


def shared(view: View) -> dict[str, object]:
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
