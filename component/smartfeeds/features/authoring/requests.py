"""Files of feeds: the rights to add and read them, the space of a user, and the files without use (`core.feed_files`).

The rights of a user in a node are read here too, for the pages that show buttons and forms. Every change checks them.
"""

from dataclasses import dataclass

from smartfeeds.core.access import Access
from smartfeeds.core.feed_files import ID_CHARACTERS, FeedFile, StoredFile, file_id_of
from smartfeeds.core.jid import Jid
from smartfeeds.core.model import Item, Node, NodeKind
from smartfeeds.core.options import AccessModel
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring import rows
from smartfeeds.formats.entry import read_entry
from smartfeeds.service.context import Context, find_for, locate_for, no_such_node
from smartfeeds.service.replies import find_comments
from smartfeeds.service.requests import Answer, FileShown, NodeRequest
from smartfeeds.service.steps import MoreSteps
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store.base import ReadTx, WriteTx

# A file is uploaded before the item that refers to it is published. A file that is unused for longer is removed.
GRACE_US = 3_600_000_000
STEP = 200  # rows that one transaction removes


@dataclass(frozen=True, slots=True)
class GetWriting(NodeRequest):
    """Asks for the rights of the actor to write in a node; with an item of it, in the node of the item's comments if
    it has one."""

    answered: Item | None = None


@dataclass(frozen=True, slots=True)
class WritingShown(Answer):
    """The node and the rights of the actor in it."""

    node: Node
    access: Access


@dataclass(frozen=True, slots=True)
class PlanUpload(NodeRequest):
    """Asks how many bytes the actor may add to a feed as files."""


@dataclass(frozen=True, slots=True)
class UploadPlan(Answer):
    """The number of bytes that the actor may still store."""

    left_bytes: int


@dataclass(frozen=True, slots=True)
class AddFile(NodeRequest):
    """Adds a stored file to a feed."""

    stored: StoredFile
    name: str
    media_type: str


@dataclass(frozen=True, slots=True)
class GetFile(NodeRequest):
    """A file of a feed, for the readers of the feed."""

    file_id: str


def get_writing(tx: ReadTx, context: Context, request: GetWriting) -> WritingShown:
    """Reads the rights of an actor in a node. Raises FeedError as `locate_for` does."""
    located = locate_for(tx, context, request.node, request.actor)
    item = request.answered
    if item is not None:
        located.check_read()
        comments = find_comments(tx, context.policy.domain, located.node, item, read_entry(item).links)
        # Comments that the actor may not know of leave the answer in the feed.
        if comments is not None:
            located = find_for(tx, context, comments.node.name, request.actor) or located
    return WritingShown(located.node, located.access)


def plan_upload(tx: ReadTx, context: Context, request: PlanUpload) -> UploadPlan:
    """Returns the space that the actor has left. Raises FeedError if the actor may not publish."""
    _feed(tx, context, request.node, request.actor)
    used_bytes = rows.files_bytes(tx, request.actor.bare_text)
    return UploadPlan(max(0, context.policy.files_bytes_per_jid - used_bytes))


def add_file(tx: WriteTx, context: Context, request: AddFile) -> FileShown:
    """Stores the row of a file. A file that the feed has already is not stored twice and keeps its name.

    Raises FeedError: PAYLOAD_TOO_BIG if the actor has not enough space left.
    """
    node = _feed(tx, context, request.node, request.actor)
    file_id = file_id_of(request.stored.digest, request.media_type)
    file = tx.file(node.node_no, file_id)
    owner = request.actor.bare_text
    if file is None:
        tx.lock_quotas(owner)
        left_bytes = context.policy.files_bytes_per_jid - rows.files_bytes(tx, owner)
        if request.stored.size_bytes > left_bytes:
            raise too_little_space(left_bytes)
        digest, size_bytes = request.stored
        names = (digest, request.name, request.media_type, size_bytes)
        file = FeedFile(node.node_no, file_id, *names, owner, context.now_us, context.now_us)
    elif file.unused_us is not None:
        # The hour begins anew, because the item that refers to the file comes after this request.
        file = file._replace(unused_us=context.now_us)
    rows.put(tx, file)
    return FileShown(file, _is_public(node), file.digest[:ID_CHARACTERS])


def get_file(tx: ReadTx, context: Context, request: GetFile) -> FileShown:
    """Returns a file of a feed. Raises FeedError as the feed itself does for this reader."""
    located = locate_for(tx, context, request.node, request.actor)
    located.check_read()
    file = tx.file(located.node.node_no, request.file_id)
    if file is None:
        raise FeedError(Condition.ITEM_NOT_FOUND, "no such file")
    return FileShown(file, _is_public(located.node), file.digest[:ID_CHARACTERS])


def remove_unused(tx: WriteTx, context: Context) -> MoreSteps[None] | None:
    """Removes the rows of unused files. `FileFolder.remove_unknown` then removes their bytes."""
    files = rows.unused(tx, context.now_us - GRACE_US, STEP)
    for file in files:
        rows.remove(tx, file)
    return MoreSteps(remove_unused) if len(files) == STEP else None


def too_little_space(left_bytes: int) -> FeedError:
    """The error for a file that is larger than the space that its owner has left."""
    return FeedError(
        Condition.PAYLOAD_TOO_BIG, f"you have {max(0, left_bytes)} bytes left for files; delete items with files first"
    )


def _feed(tx: ReadTx, context: Context, name: str | None, actor: Jid) -> Node:
    """The feed for a file. Raises FeedError if it is missing, or if the actor may not publish in it."""
    located = find_for(tx, context, name, actor)
    if located is None or located.node.name != name:
        raise no_such_node(tx, name)
    located.access.check_publish()
    if located.node.kind is not NodeKind.FEED:
        raise FeedError(Condition.NOT_ALLOWED, "files belong to feeds, and this node is a generic one")
    return located.node


def _is_public(node: Node) -> bool:
    return node.options.access_model is AccessModel.OPEN


USE_CASES = UseCases(
    reads={
        GetWriting: ("get_writing", get_writing),
        PlanUpload: ("plan_upload", plan_upload),
        GetFile: ("get_file", get_file),
    },
    writes={AddFile: ("add_file", add_file)},
)
