"""Values that a process which reads documents of strangers returns to the service (`workers`).

Whoever takes over such a process must not take over the service, too. So results are values of the types below, and
the service calls one function while it reads them: `make`, which sets the fields of a value and calls no code of it.
"""

import inspect
import io
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

from smartfeeds.errors import SmartfeedsError

# The packages whose dataclasses, named tuples, enumerations, errors and texts of bytes are admitted.
_PACKAGES: Final = frozenset({"core", "errors", "formats", "sync", "service", "sources", "client", "features"})
_PROTOCOL: Final = 5
_KEY_DEPTH: Final = 10  # of tuples and values inside one that is hashed; results have three


class _Encoder(pickle.Pickler):
    """Writes values of our own types as calls of `make`. No value is written as a reference to an earlier one: with
    references a few bytes make a tuple whose hash takes for ever.
    """

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, _PROTOCOL)
        self.fast = True

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind in _CONTAINERS or value is make:
            return NotImplemented
        module, name = kind.__module__, kind.__qualname__
        if module.startswith("smartfeeds.") and not _is_admitted(kind):
            name = str(value.__reduce__())  # the name of the only instance, if there is one
        return make, (module, name, _state(value, _admitted(module, name)))


_OPCODES: Final = (
    *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.POP_MARK),
    *(pickle.STACK_GLOBAL, pickle.REDUCE),
    *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BININT, pickle.BININT1, pickle.BININT2),
    *(pickle.LONG1, pickle.LONG4, pickle.BINFLOAT),
    *(pickle.SHORT_BINUNICODE, pickle.BINUNICODE, pickle.BINUNICODE8),
    *(pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8, pickle.BYTEARRAY8),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.TUPLE),
    *(pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS, pickle.EMPTY_DICT, pickle.SETITEM, pickle.SETITEMS),
    *(pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET),
)


class _Decoder(pickle._Unpickler):
    """Reads what `_Encoder` wrote, and refuses any other operation, function or class.

    It is the reader in Python, which has a table of operations. The reader in C also sets attributes of any object,
    such as a member of an enumeration, which the service shares. Other threads run while the reader in Python works.

    The table and the stack are private parts of `pickle`, which typeshed does not list: hence `vars` and the ignored
    types. Without an operation of `_OPCODES` the import fails, and `test_workers` decodes values of every kind.
    """

    dispatch: ClassVar[dict[int, Any]] = {code[0]: pickle._Unpickler.dispatch[code[0]] for code in _OPCODES}

    def load_reduce(self) -> None:
        """Calls `make`, also where another value of the stack could be called."""
        stack: list[Any] = vars(self)["stack"]
        arguments = stack.pop()
        if stack[-1] is not make:
            raise pickle.UnpicklingError("the result calls a value")
        stack[-1] = make(*arguments)

    def load_setitem(self) -> None:
        """Adds an entry to a dictionary."""
        _check_keys(vars(self)["stack"][-2:-1])
        super().load_setitem()  # type: ignore[misc]

    def load_setitems(self) -> None:
        """Adds entries to a dictionary."""
        _check_keys(vars(self)["stack"][::2])
        super().load_setitems()  # type: ignore[misc]

    def load_additems(self) -> None:
        """Adds members to a set."""
        _check_keys(vars(self)["stack"])
        super().load_additems()  # type: ignore[misc]

    def load_frozenset(self) -> None:
        """Makes a frozenset."""
        _check_keys(vars(self)["stack"])
        super().load_frozenset()  # type: ignore[misc]

    dispatch |= {
        pickle.REDUCE[0]: load_reduce,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.ADDITEMS[0]: load_additems,
        pickle.FROZENSET[0]: load_frozenset,
    }

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        if (module, name) != (make.__module__, make.__name__):
            raise pickle.UnpicklingError(f"the result contains {module}.{name}")
        return make


def _check_keys(keys: Sequence[object]) -> None:
    """Raises UnpicklingError if a value is too deep to be hashed: Python counts no depth there, and ends."""
    parts = keys
    for _ in range(_KEY_DEPTH):
        parts = [part for value in parts for part in _hashed_parts(value)]
        if not parts:
            return
    raise pickle.UnpicklingError("the result has a key that is too deep")


def _hashed_parts(value: object) -> Sequence[object]:
    if isinstance(value, tuple):
        return value
    if not is_dataclass(value) or isinstance(value, type):
        return ()
    return [getattr(value, field) for field in _fields(cast("Any", type(value)))]


def dump_value(value: object) -> bytes:
    """Encodes a value. Raises pickle.PicklingError for a type that is not admitted."""
    stream = io.BytesIO()
    _Encoder(stream).dump(value)
    return stream.getvalue()


def load_value(data: bytes) -> Any:
    """Decodes a value. Raises an exception of any type for data that `dump_value` did not write."""
    return _Decoder(io.BytesIO(data)).load()


def make(module: str, name: str, state: Any) -> object:
    """Makes a value of its type and its state."""
    _check_keys((module, name))
    kind = _admitted(module, name)
    if not inspect.isclass(kind):
        return kind  # the only instance of its type
    if issubclass(kind, Enum):
        _check_keys((state,))
        return kind(state)
    if issubclass(kind, SmartfeedsError):
        arguments, attributes = state
        error = kind.__new__(kind, *arguments)
        for attribute in _slots(cast("Any", kind)):
            setattr(error, attribute, attributes[attribute])
        return error
    if issubclass(kind, tuple):
        return tuple.__new__(kind, state)
    if issubclass(kind, bytes):
        data, attributes = state
        text = bytes.__new__(kind, data)
        vars(text).update(attributes)
        return text
    value = object.__new__(kind)
    for field, content in zip(_fields(cast("Any", kind)), state, strict=True):
        object.__setattr__(value, field, content)
    return value


def _state(value: Any, kind: Any) -> object:
    if value is kind:
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, SmartfeedsError):
        return value.args, {name: getattr(value, name) for name in _slots(kind)}
    if isinstance(value, tuple):
        return tuple(value)
    if isinstance(value, bytes):
        # A payload has its shape with it. Its tree is read again if somebody needs it.
        return bytes(value), {name: content for name, content in vars(value).items() if name == "shape"}
    return tuple(getattr(value, field) for field in _fields(kind))


@lru_cache(maxsize=256)
def _admitted(module: str, name: str) -> Any:
    """The type of this name, or the only instance of a type. Raises pickle.PicklingError."""
    top, _, inner = module.partition(".")
    value = getattr(sys.modules.get(module), name, None)
    is_ours = top == "smartfeeds" and inner.partition(".")[0] in _PACKAGES
    if not is_ours or not (_is_admitted(value) if isinstance(value, type) else _is_constant(value, name)):
        raise pickle.PicklingError(f"the result contains a value of {module}.{name}")
    return value


def _is_admitted(kind: type) -> bool:
    return is_dataclass(kind) or issubclass(kind, Enum | SmartfeedsError | tuple | bytes)


def _is_constant(value: object, name: str) -> bool:
    """Whether a value is the only instance of its type, which copies are, too (`Dialect.__reduce__`)."""
    return type(value).__module__.startswith("smartfeeds.") and value.__reduce__() == name


@lru_cache(maxsize=256)
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@lru_cache(maxsize=256)
def _slots(kind: Any) -> tuple[str, ...]:
    return tuple(name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()))


_CONTAINERS: Final = frozenset({type(None), bool, int, float, str, bytes, bytearray, tuple, list, dict, set, frozenset})
