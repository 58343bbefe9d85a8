"""The rights of users to write in a feed, for the pages that link to the forms for entries."""

from smartfeeds.core.model import Item, NodeKind
from smartfeeds.core.options import GUESTS_WITH_APPROVAL, NodeOptions
from smartfeeds.core.token import TokenScope, covers
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.requests import GetWriting, WritingShown
from smartfeeds.features.pages.frame import EntryForms, Writing
from smartfeeds.formats.post import fit_markdown, markdown_of
from smartfeeds.formats.xml import Element
from smartfeeds.http.calls import HttpCall
from smartfeeds.service.answers import Handle, ask


def entry_forms(handle: Handle, service: str) -> EntryForms:
    """Returns the part by which pages know the forms."""
    rights = WriterRights(handle, service)
    return EntryForms(rights.writing, rights.reply_node)


class WriterRights:
    """Reads the rights of users to write. `service` is the address of the service."""

    def __init__(self, handle: Handle, service: str) -> None:
        self._handle = handle
        self._service = service

    async def writing(self, call: HttpCall) -> Writing | None:
        """Returns the rights of the user to write in the feed of a page, None without any. Raises FeedError."""
        if call.token is None or not covers(call.token, TokenScope.PUBLISH, call.name):
            return None
        answer = await self.get_writing(call)
        access = answer.access
        if not access.may_publish and not access.may_retract(own=True):
            return None
        guests = answer.node.options.guest_replies == GUESTS_WITH_APPROVAL
        return Writing(access.may_publish, access.may_overwrite(own=False), access.may_retract(own=False), guests)

    async def reply_node(self, call: HttpCall, item: Item) -> str:
        """The node in which the user may answer an item of the feed: that of its comments if this service has it, or
        else the feed. "" if the user may not publish there. Raises FeedError."""
        request = GetWriting(call.actor, self._service, call.name, item)
        writing = await ask(self._handle, request, WritingShown)
        name = writing.node.name
        may = call.token is not None and covers(call.token, TokenScope.PUBLISH, name) and writing.access.may_publish
        return name if may else ""

    async def fit(self, call: HttpCall, entry: Element) -> Element:
        """Returns a new entry without its Markdown if it is too large for the feed with it."""
        if not markdown_of(entry):
            return entry
        try:
            options = (await self.get_writing(call)).node.options
        except FeedError as error:
            # The publish creates the feed with the default options, or fails.
            if error.condition is not Condition.ITEM_NOT_FOUND:
                raise
            options = NodeOptions(NodeKind.FEED)
        fit_markdown(entry, options.max_payload_size)
        return entry

    async def get_writing(self, call: HttpCall, name: str = "") -> WritingShown:
        """The feed of a page, or another node, with the rights of the user. Raises FeedError."""
        return await ask(self._handle, GetWriting(call.actor, self._service, name or call.name), WritingShown)
