"""Ad-hoc commands for the running service: statistics, log level, announcements, stop and restart (XEP-0133).

The fields of announcements, stop and restart have the names of XEP-0133 sections 4.23, 4.31 and 4.32.
"""

from functools import partial

from smartfeeds.core.text import attribute, escape
from smartfeeds.delivery.shards import SHARDS
from smartfeeds.features.administration.process import (
    MAX_DELAY_S,
    MAX_TEXT_BYTES,
    Announce,
    Announcement,
    CancelStop,
    GetLogLevel,
    GetStatistics,
    LogLevel,
    Recipients,
    SetLogLevel,
    Statistics,
    StopService,
)
from smartfeeds.service.requests import EmptyResult
from smartfeeds.service.standing import Audience
from smartfeeds.telemetry import LOG_LEVELS
from smartfeeds.xmpp.command_fields import choice_field, form_step, lines_field, number_field, text_field
from smartfeeds.xmpp.commands import (
    Command,
    CommandForm,
    CommandResult,
    StepInput,
    note_result,
    project_command,
)
from smartfeeds.xmpp.forms import FormField
from smartfeeds.xmpp.namespaces import ADMIN

_MAX_SUBJECT_BYTES = 200
_DELAY_S = 60

_LEVEL = choice_field("level", "Log level", dict.fromkeys(LOG_LEVELS, ""))
_SUBJECT = text_field("subject", "Subject", _MAX_SUBJECT_BYTES, required=False)
_TEXT = lines_field("announcement", "Announcement", MAX_TEXT_BYTES)
_OPTIONAL_TEXT = lines_field("announcement", "Announcement", MAX_TEXT_BYTES, required=False)
_RECIPIENTS = choice_field(
    "recipients",
    "Recipients",
    {Recipients.SUBSCRIBERS.value: "All subscribers", Recipients.OWNERS.value: "All owners of nodes"},
)
_DELAY = number_field("delay", "Delay in seconds", 0, MAX_DELAY_S, default=_DELAY_S)


async def _statistics(step: StepInput) -> CommandResult:
    answer = await step.answer(GetStatistics(step.actor, step.service), Statistics)
    counts, readings, rates = answer.counts, answer.readings, answer.rates
    facts = (
        ("uptime", "Seconds since the start", f"{answer.uptime_s:.0f}"),
        ("nodes", "Nodes", f"{counts.nodes}"),
        ("items", "Items", f"{counts.items}"),
        ("deleted", "Deleted items", f"{counts.deleted}"),
        ("subscriptions", "Subscriptions", f"{counts.subscriptions}"),
        ("requests", "Requests answered", f"{answer.requests}"),
        ("publish-rate", "Items published per second, in the last minute", f"{rates.published:.2f}"),
        ("notification-rate", "Notifications per second, in the last minute", f"{rates.notified:.2f}"),
        ("pull-rate", "Pulls per second, in the last minute", f"{rates.pulled:.2f}"),
        ("refusal-rate", "Requests refused per second, in the last minute", f"{rates.refused:.2f}"),
        ("in-flight", "Requests in progress", f"{readings.in_flight}"),
        ("refused", "Requests refused, too many at once", f"{readings.refused}"),
        ("notifications", "Notifications sent", f"{readings.sent}"),
        ("dropped", "Changes not notified, too old", f"{readings.dropped}"),
        ("lag", "Age of the change notified last, in seconds", f"{readings.lag_s:.2f}"),
        ("connects", "Attempts to connect to the server", f"{readings.connects}"),
        ("http", "Open HTTP connections", f"{readings.http_connections}"),
        ("processes", "Processes on the database", f"{readings.processes}"),
        ("shards", f"Shards of this process, of {SHARDS}", f"{readings.shards}"),
    )
    return CommandResult((), tuple(FormField(var, "text-single", (text,), label) for var, label, text in facts))


async def _ask_level(step: StepInput) -> CommandForm:
    answer = await step.answer(GetLogLevel(step.actor, step.service), LogLevel)
    return CommandForm((_LEVEL.show(answer.level),), instructions="The level is valid until the next start.")


async def _set_level(step: StepInput) -> CommandResult:
    answer = await step.answer(SetLogLevel(step.actor, step.service, _LEVEL.read(step)), LogLevel)
    return note_result(f"The log level is {answer.level}.")


async def _announce(step: StepInput) -> CommandResult:
    announcement = Announcement(Recipients(_RECIPIENTS.read(step)), _SUBJECT.read(step), _TEXT.read(step))
    await step.answer(Announce(step.actor, step.service, announcement), EmptyResult)
    return note_result(f"The announcement is being sent to all {announcement.recipients.value}.")


_ask_stop = form_step(
    _DELAY, _RECIPIENTS, _SUBJECT, _OPTIONAL_TEXT, instructions="Without a text nothing is announced."
)


async def _stop(step: StepInput, *, restart: bool) -> CommandResult:
    delay_s, text, subject = _DELAY.read(step), _OPTIONAL_TEXT.read(step), _SUBJECT.read(step)
    recipients = Recipients(_RECIPIENTS.read(step))
    announcement = Announcement(recipients, subject, text) if text else None
    await step.answer(StopService(step.actor, step.service, delay_s, restart, announcement), EmptyResult)
    return note_result(f"The service {'restarts' if restart else 'stops'} in {delay_s} seconds.")


async def _cancel_stop(step: StepInput) -> CommandResult:
    await step.answer(CancelStop(step.actor, step.service), EmptyResult)
    return note_result("The shutdown or restart is cancelled.")


def encode_announcement(domain: str, to: str, announcement: Announcement, stanza_id: str) -> bytes:
    """Returns the message of an announcement to one address. Servers store it for users who are offline."""
    subject = f"<subject>{escape(announcement.subject)}</subject>" if announcement.subject else ""
    return (
        f"<message id='{attribute(stanza_id)}' from='{attribute(domain)}' to='{attribute(to)}' type='normal'>"
        f"{subject}<body>{escape(announcement.text)}</body></message>"
    ).encode()


COMMANDS = (
    project_command("statistics", "Statistics", Audience.ADMINS, _statistics),
    project_command("log-level", "Log level", Audience.ADMINS, _ask_level, _set_level),
    Command(
        f"{ADMIN}#announce",
        "Send an announcement",
        ADMIN,
        (form_step(_RECIPIENTS, _SUBJECT, _TEXT), _announce),
        Audience.ADMINS,
    ),
    Command(
        f"{ADMIN}#shutdown", "Shut down the service", ADMIN, (_ask_stop, partial(_stop, restart=False)), Audience.ADMINS
    ),
    Command(
        f"{ADMIN}#restart", "Restart the service", ADMIN, (_ask_stop, partial(_stop, restart=True)), Audience.RESTARTERS
    ),
    project_command("cancel-stop", "Cancel a shutdown or restart", Audience.ADMINS, _cancel_stop),
)
