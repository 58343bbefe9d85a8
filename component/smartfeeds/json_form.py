"""The JSON of values that a column of a table or a letter to another process has. pydantic reads it by the types of
their fields in its strict mode, so a damaged text is an error and no value of another type.

pydantic is imported with the first value: help texts and the completion of shells import many forms and use none.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class JsonForm(Generic[T]):
    """The JSON of a dataclass, or of a collection of dataclasses.

    `columns` are fields that are stored beside the JSON. A `sparse` form leaves out the fields that have their default.
    The form of a letter is `lenient`: it ignores a field that it does not know, because the sender may be of a newer
    version. In a table such a field is damage.
    """

    def __init__(
        self, kind: type[T], *, columns: AbstractSet[str] = frozenset(), sparse: bool = False, lenient: bool = False
    ) -> None:
        self._kind = kind
        self._columns = columns
        self._sparse = sparse
        self._extra: Literal["ignore", "forbid"] = "ignore" if lenient else "forbid"

    @cached_property
    def _adapter(self) -> "TypeAdapter[T]":
        from pydantic import TypeAdapter

        return TypeAdapter(self._kind)  # with the first value: it takes a millisecond

    def write(self, value: T) -> str:
        """Returns a value as JSON."""
        exclude = set(self._columns) or None
        data = self._adapter.dump_json(value, exclude=exclude, exclude_defaults=self._sparse, warnings="error")
        return data.decode()

    def read(self, text: str | bytes, **columns: object) -> T:
        """Returns the value of JSON that `write` returned, with its columns. Raises ValueError, and TypeError for
        columns beside JSON that is no object.
        """
        try:
            if not columns:
                return self._adapter.validate_json(text, strict=True, extra=self._extra)
            return self._read_beside(columns, text.encode() if isinstance(text, str) else text)
        except ValueError as error:
            from pydantic import ValidationError

            if not isinstance(error, ValidationError):
                raise
            # The text of the error quotes the value, which may be a secret.
            fault = error.errors(include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise ValueError(f"{place}: {fault['msg']}" if place else fault["msg"]) from None

    def _read_beside(self, columns: dict[str, object], text: bytes) -> T:
        from pydantic_core import from_json, to_json

        data: Any = from_json(text)
        # As JSON again: of Python's values the strict mode would refuse the texts of enums and the lists of tuples.
        # Bytes are put in afterwards, because JSON has none.
        blobs = {name: column for name, column in columns.items() if isinstance(column, bytes)}
        value = self._adapter.validate_json(
            to_json(data | columns | dict.fromkeys(blobs, "")), strict=True, extra=self._extra
        )
        for name in blobs:
            if not isinstance(getattr(value, name), bytes):
                raise ValueError(f"{name}: Input should not be bytes")
        return replace(cast("Any", value), **blobs) if blobs else value
