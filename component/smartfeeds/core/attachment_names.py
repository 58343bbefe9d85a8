"""Names of nodes that belong to another node: those of attachments to items, and of their summaries (XEP-0470).

The attachments of an item are in a node whose name contains the address of the item. The name has query-like text, but
it is never a view. The people and the models of such a node are those of the other node
(`service.context.governor_of`).
"""

from dataclasses import dataclass
from urllib.parse import unquote

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import MAX_ID_BYTES, Node
from smartfeeds.core.urls import xmpp_uri

ATTACHMENTS = "urn:xmpp:pubsub-attachments:1"
SUMMARY = "urn:xmpp:pubsub-attachments:summary:1"
_PREFIX = f"{ATTACHMENTS}/xmpp:"
GOVERNED = "urn:xmpp:pubsub-attachments:"  # how the names of these nodes begin
_SUMMARY_PREFIX = f"{SUMMARY}/"


@dataclass(frozen=True, slots=True)
class AttachmentTarget:
    """The item to which something is attached: its service, a bare address, its node and its id."""

    service: str
    node: str
    item_id: str

    @property
    def domain(self) -> str:
        """The domain of the service."""
        return self.service.rpartition("@")[2]

    @property
    def name(self) -> str:
        """The canonical name of the attachment node, with the domain for every address of the service."""
        return f"{ATTACHMENTS}/{xmpp_uri(self.domain, self.node, self.item_id)}"


def target_of(name: str | None) -> AttachmentTarget | None:
    """Returns the target in the name of an attachment node, or None for other names. The address may be unescaped."""
    if name is None or not name.startswith(_PREFIX):
        return None
    address, _, query = name.removeprefix(_PREFIX).partition("?;")
    node_field, _, item_id = query.partition(";item=")
    service = parse_jid(unquote(address))
    node = unquote(node_field.removeprefix("node="))
    if service is None or not node or not item_id or not node_field.startswith("node="):
        return None
    target = AttachmentTarget(service.bare_text, node, unquote(item_id))
    return target if len(target.name.encode()) <= MAX_ID_BYTES else None


def canonical_name(name: str) -> str:
    """Returns the canonical name of an attachment node; any other name is returned as it is."""
    target = target_of(name)
    return name if target is None else target.name


def summary_name(node: str) -> str:
    """Returns the name of the node with the summaries of all items of a node."""
    return f"{_SUMMARY_PREFIX}{node}"


def attachment_names(domain: str, node: str) -> tuple[str, str]:
    """Returns the names between which the attachment nodes of all items of a node are, both exclusive."""
    prefix = f"{ATTACHMENTS}/{xmpp_uri(domain, node)};item"
    return f"{prefix}=", f"{prefix}>"


def is_reserved(name: str | None, domain: str) -> bool:
    """Returns whether only the service may create a node of this name."""
    return name is not None and target_node(name, domain) is not None


def follows_target(name: str) -> bool:
    """Returns whether a node of this name may be an attachment node or a summary node."""
    return name.startswith(GOVERNED)


def is_listed(node: Node) -> bool:
    """Returns whether lists of nodes show a node to strangers. Attachment nodes are as many as items, and clients know
    their names from the items."""
    return node.options.listed and not node.name.startswith(GOVERNED)


def target_node(name: str, domain: str) -> str | None:
    """Returns the node to which an attachment node or a summary node of this domain belongs, or None."""
    if not follows_target(name):  # nearly every name
        return None
    if name.startswith(_SUMMARY_PREFIX):
        return name.removeprefix(_SUMMARY_PREFIX)
    target = target_of(name)
    return target.node if target is not None and target.domain == domain else None
