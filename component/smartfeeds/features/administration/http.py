"""Administration over HTTP: the options of nodes, and statistics. Lists are in `http.resources`.

The requests are those of the ad-hoc commands, so the same rules decide: owners manage their own nodes, admins of the
service all nodes.
"""

from dataclasses import asdict

from smartfeeds.core import urls
from smartfeeds.core.options import OPTIONS, PUBSUB
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.administration.process import GetStatistics, Statistics
from smartfeeds.formats.json_text import JsonObject, dump_json
from smartfeeds.http.bodies import BodyReader
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.conditions import is_any, strong_tags_of, unless_known
from smartfeeds.http.negotiation import JSON
from smartfeeds.http.openapi_schemas import ref
from smartfeeds.http.operations import IF_MATCH, IF_NONE_MATCH, Operation
from smartfeeds.http.options_json import KIND_NAME, check_names, form_values, options_json
from smartfeeds.http.replies import Reply
from smartfeeds.http.resources import PRIVATE, object_of
from smartfeeds.service.answers import Handle, ask
from smartfeeds.service.nodes import options_tag
from smartfeeds.service.requests import (
    Configuration,
    Configure,
    GetConfiguration,
)

_PATCHES = ("application/merge-patch+json", JSON.bare_type)
_OPTIONS = {JSON.bare_type: ref("Options")}


GET_OPTIONS = Operation(
    "getOptions",
    "The options of a node",
    {200: _OPTIONS},
    parameters=(IF_NONE_MATCH,),
    scope=TokenScope.ADMIN,
)
PATCH_FEED = Operation(
    "configureFeed",
    "Changes options of a node by a JSON merge patch (RFC 7396); null restores the default. If-Match has the entity "
    "tag of /options/NAME/",
    {200: _OPTIONS},
    errors=(406, 412),
    parameters=(IF_MATCH,),
    body=dict.fromkeys(_PATCHES, ref("OptionChanges")),
    scope=TokenScope.ADMIN,
)
GET_STATISTICS = Operation(
    "getStatistics",
    "Counts of the service, for admins",
    {200: {JSON.bare_type: ref("Statistics")}},
    scope=TokenScope.ADMIN,
)


class Administration:
    """Handles the requests. `service` is the address of the service; `change` performs a request even if the client
    disconnects."""

    def __init__(self, handle: Handle, change: Handle, service: str, bodies: BodyReader) -> None:
        self._handle = handle
        self._change = change
        self._service = service
        self._bodies = bodies

    async def get_options(self, call: HttpCall) -> Reply:
        """The options of a node. Raises FeedError."""
        return unless_known(call.header("If-None-Match"), _options_reply(await self._configuration(call)))

    async def configure(self, call: HttpCall) -> Reply:
        """Changes options of a node (XEP-0060 8.2). Raises FeedError."""
        changes = await object_of(self._bodies, call, _PATCHES)
        kind = changes.pop(KIND_NAME, None)
        check_names(changes)
        options = (await self._configuration(call)).options
        if kind not in (None, options.kind.value):
            raise FeedError(Condition.NOT_ACCEPTABLE, f"{KIND_NAME}: this node stays a {options.kind.value} node")
        form = {
            f"{PUBSUB}{name}": OPTIONS[name].defaults[options.kind] if value is None else form_values(name, value)
            for name, value in changes.items()
        }
        match = call.header("If-Match")
        expected = strong_tags_of(match) if match and not is_any(match) else None
        await self._change(Configure(call.actor, self._service, call.name, form, expected))
        path = f"{call.site_url}{urls.entry_path(call.name, folder=urls.OPTIONS)}"
        return _options_reply(await self._configuration(call)).with_headers(Content_Location=path)

    async def _configuration(self, call: HttpCall) -> Configuration:
        return await ask(self._handle, GetConfiguration(call.actor, self._service, call.name), Configuration)

    async def statistics(self, call: HttpCall) -> Reply:
        """Counts of the service. Raises FeedError."""
        answer = await ask(self._handle, GetStatistics(call.actor, self._service), Statistics)
        counts: JsonObject = {
            **asdict(answer.counts),
            "uptime_s": answer.uptime_s,
            "requests": answer.requests,
            "notifications": answer.readings.sent,
            "rates": answer.rates._asdict(),
        }
        return Reply(dump_json(counts), JSON.media_type, headers=PRIVATE)


def _options_reply(configuration: Configuration) -> Reply:
    options = configuration.options
    headers = {**PRIVATE, "Cache-Control": "private, no-cache", "ETag": f'"{options_tag(options)}"'}
    return Reply(dump_json(options_json(options)), JSON.media_type, headers=headers)
