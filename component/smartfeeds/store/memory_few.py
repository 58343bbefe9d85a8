"""Small tables of the memory store: tokens, mirrors, marks and events."""

from smartfeeds.core.mirror import MirrorRow
from smartfeeds.core.model import Mark, NodeEvent
from smartfeeds.core.tokens import Token
from smartfeeds.core.view import Order
from smartfeeds.store.memory_data import Data


class FewReads:
    """The part of ReadTx that is about tokens, mirrors, marks and events."""

    _data: Data

    def token(self, token_id: str) -> Token | None:
        return self._data.tokens.get(token_id)

    def tokens(self, after: str, limit: int) -> list[Token]:
        return [self._data.tokens[token_id] for token_id in sorted(self._data.tokens) if token_id > after][:limit]

    def mirror(self, name: str) -> MirrorRow | None:
        return self._data.mirrors.get(name)

    def mirrors(self) -> list[MirrorRow]:
        return [row for _, row in sorted(self._data.mirrors.items())]

    def mark(self, node_no: int, order: Order) -> Mark | None:
        return self._data.marks.get((node_no, order))

    def events(self, node_no: int, limit: int) -> list[NodeEvent]:
        found = [event for event in self._data.events.values() if event.node_no == node_no]
        return sorted(found, key=lambda event: (event.at_us, event.event_no))[:limit]
