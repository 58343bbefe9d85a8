"""The resources that request the notifications of nodes by `NODE+notify` (XEP-0060 section 9.2).

Many resources have the same capabilities, so node names are stored by capabilities and not by resource. A node
that no resource requests costs one look-up in a dictionary.
"""

from collections import OrderedDict
from collections.abc import Iterable

from smartfeeds.push.side import Interest
from smartfeeds.xmpp.caps import CapsKey

# Known clients request at most 30 nodes. Together the limits bound the names in memory to 200,000.
KEYS_MAX = 2_000
NODES_MAX = 100


class Interests:
    """The requests of the resources that are available. Memory only."""

    def __init__(self, keys_max: int = KEYS_MAX, nodes_max: int = NODES_MAX) -> None:
        self._keys_max = keys_max
        self._nodes_max = nodes_max
        self._nodes: OrderedDict[CapsKey, tuple[str, ...]] = OrderedDict()  # in the order of the last use
        self._resources: dict[CapsKey, dict[str, Interest]] = {}
        self._key_of: dict[str, CapsKey] = {}
        self._keys: dict[str, set[CapsKey]] = {}  # by node: keys that at least one resource has
        self._since_us: dict[str, int] = {}  # by node: since when `_keys` has it
        self._changes = 0
        self._changed: dict[CapsKey, int] = {}

    def knows(self, key: CapsKey) -> bool:
        """Returns whether the nodes that these capabilities request are stored."""
        return key in self._nodes

    def learn(self, key: CapsKey, nodes: Iterable[str]) -> None:
        """Stores which nodes capabilities request. The caller has verified the hash.

        If there are too many capabilities, those that no resource has are dropped, the oldest first. If all are in use,
        the new ones are not stored.
        """
        if len(self._nodes) >= self._keys_max:
            oldest = next((each for each in self._nodes if each not in self._resources), None)
            if oldest is None:
                return
            del self._nodes[oldest]
        self._nodes[key] = tuple(dict.fromkeys(nodes))[: self._nodes_max]

    def add(self, key: CapsKey, interest: Interest) -> tuple[str, ...]:
        """Stores that a resource has capabilities that `learn` has stored. Returns the nodes that it did not request
        before."""
        former_nodes = self.remove(interest.jid)
        nodes = self._nodes.get(key, ())
        if not nodes:
            return ()
        self._nodes.move_to_end(key)
        if key not in self._resources:
            for node in nodes:
                self._keys.setdefault(node, set()).add(key)
                self._since_us.setdefault(node, interest.since_us)
        self._resources.setdefault(key, {})[interest.jid] = interest
        self._key_of[interest.jid] = key
        self._note_change(key)
        return tuple(node for node in nodes if node not in former_nodes)

    def remove(self, jid: str) -> tuple[str, ...]:
        """Removes a resource. Returns the nodes that it requested."""
        key = self._key_of.pop(jid, None)
        if key is None:
            return ()
        resources, nodes = self._resources[key], self._nodes[key]
        del resources[jid]
        if resources:
            self._note_change(key)
            return nodes
        del self._resources[key], self._changed[key]
        for node in nodes:
            self._keys[node].discard(key)
            if not self._keys[node]:
                del self._keys[node], self._since_us[node]
        return nodes

    def of_resource(self, jid: str) -> Interest | None:
        """Returns the request of a resource, None if it requests no node."""
        key = self._key_of.get(jid)
        return None if key is None else self._resources[key][jid]

    def nodes_of(self, jid: str) -> tuple[str, ...]:
        """Returns the nodes that a resource requests."""
        key = self._key_of.get(jid)
        return () if key is None else self._nodes[key]

    def clear(self) -> None:
        """Removes all resources. The nodes that their capabilities request stay stored."""
        for jid in list(self._key_of):
            self.remove(jid)

    def since_us(self, node: str) -> int | None:
        """Returns since when a resource requests this node, None if no resource does.

        The function is one look-up in a dictionary, so any thread may call it.
        """
        return self._since_us.get(node)

    def of(self, node: str) -> list[Interest]:
        """Returns the resources that request a node."""
        return [each for key in self._keys.get(node, ()) for each in self._resources[key].values()]

    def version(self, node: str) -> tuple[int, ...]:
        """Returns numbers that change with every change of `of`."""
        return tuple(sorted(self._changed[key] for key in self._keys.get(node, ())))

    def _note_change(self, key: CapsKey) -> None:
        self._changes += 1
        self._changed[key] = self._changes
