"""What there is little of, in the memory store: tokens and mirrors."""

from smartfeeds.core.mirror import MirrorRow
from smartfeeds.core.tokens import Token
from smartfeeds.store.memory_data import Data


class FewReads:
    """The part of ReadTx that is about tokens and mirrors."""

    _data: Data

    def token(self, token_id: str) -> Token | None:
        return self._data.tokens.get(token_id)

    def tokens(self, after: str, limit: int) -> list[Token]:
        return [self._data.tokens[token_id] for token_id in sorted(self._data.tokens) if token_id > after][:limit]

    def mirror(self, name: str) -> MirrorRow | None:
        return self._data.mirrors.get(name)

    def mirrors(self) -> list[MirrorRow]:
        return [row for _, row in sorted(self._data.mirrors.items())]
