"""Pickles of plain values, read by a machine that cannot run anything.

It knows the operations that torch's files use and a few names, each of which stands for a value
that is made here. It builds dicts, lists, tuples, strings, numbers and what the names stand for.
Nothing is imported, and no pickle of a stranger reaches an unpickler that could. What a pickle can
make is bounded by its size: it has a limited number of containers, and only plain keys are hashed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import IO, Any

from lmpnn_kge.errors import short

#: The most dicts, lists and tuples of a file; LibKGE's have some thousands.
MAX_CONTAINERS = 1_000_000

#: A text longer than this is compared with the rest of the file before memory is taken for it.
LONG_TEXT = 1 << 16

#: Keys of a dict. Others, such as nested tuples, can take years to hash.
KEYS = (str, int, float, bool, type(None))

MAX_KEY = 1 << 64


class Refused(ValueError):
    """A name that no such file needs."""


class Name:
    """A name in a pickle: it can be called with arguments, or made anew as a class is."""

    def __init__(
        self,
        name: str,
        call: Callable[..., Any] | None = None,
        new: Callable[..., Any] | None = None,
    ):
        self.name, self.call, self.new = name, call, new


class PlainPickle:
    """Reads one pickle after the other from a stream."""

    def __init__(
        self,
        stream: IO[bytes],
        size: int,
        names: Mapping[str, Name],
        persistent: Callable[[Any], Any],
    ):
        self.stream, self.size, self.names = stream, size, names
        self.persistent = persistent  # makes a value of what refers to data outside the pickle
        self.containers = 0

    def load(self) -> Any:
        """The value of the next pickle; ValueError says what is wrong with it."""
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        read, operations = self.stream.read, OPERATIONS
        try:
            while (code := read(1)) != b".":
                operations[code](self)
            value = self.stack.pop()
        except KeyError:
            if code:
                raise ValueError(f"it has the operation {code!r}, which torch never uses") from None
            raise ValueError("it ends too early") from None
        except (IndexError, struct.error):
            raise ValueError("its operations do not fit together") from None
        if self.stack or self.marks:
            raise ValueError("its operations do not fit together")
        return value

    def bytes(self, count: int) -> bytes:
        if count > LONG_TEXT and count > self.size - self.stream.tell():
            raise ValueError("it ends too early")
        part = self.stream.read(count)
        if len(part) != count:
            raise ValueError("it ends too early")
        return part

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.bytes(struct.calcsize(form)))[0]

    def line(self) -> str:
        text = self.stream.readline(1000)
        if not text.endswith(b"\n"):
            raise ValueError("it has a name without an end")
        return text[:-1].decode("utf-8", "backslashreplace")

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        start = self.marks.pop()
        if start > len(self.stack):
            raise IndexError
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def push(self, container: Any) -> None:
        """Push a new container."""
        self.containers += 1
        if self.containers > MAX_CONTAINERS:
            raise ValueError(f"it has more than {MAX_CONTAINERS:,} lists and dictionaries")
        self.stack.append(container)

    def tuple_of(self, count: int) -> None:
        if count > len(self.stack):
            raise IndexError
        items = tuple(self.stack[-count:])
        del self.stack[-count:]
        self.push(items)

    def top(self, kind: type) -> Any:
        """The container on the stack that something is added to."""
        if not isinstance(self.stack[-1], kind):
            raise ValueError(f"it adds to {short(self.stack[-1])} as if it were a {kind.__name__}")
        return self.stack[-1]

    def set_items(self, items: list[Any]) -> None:
        target = self.top(dict)
        if len(items) % 2:
            raise IndexError
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in KEYS or (type(key) is int and abs(key) >= MAX_KEY):
                raise ValueError(f"it has a dictionary with the key {short(key)}")
            target[key] = value

    def put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def get(self, place: int) -> None:
        if place not in self.memo:
            raise ValueError(f"it refers to place {place}, which is empty")
        self.stack.append(self.memo[place])

    # The operations by name, as in Python's pickletools.

    def proto(self) -> None:
        if (protocol := self.bytes(1)[0]) != 2:
            raise ValueError(f"it uses pickle protocol {protocol}, but torch writes 2")

    def binunicode(self) -> None:
        text = self.bytes(self.number("<I"))
        self.stack.append(text.decode("utf-8", "surrogatepass"))

    def short_binstring(self) -> None:
        self.stack.append(self.bytes(self.bytes(1)[0]).decode("utf-8", "surrogateescape"))

    def long1(self) -> None:
        digits = self.bytes(self.bytes(1)[0])
        self.stack.append(int.from_bytes(digits, "little", signed=True))

    def append(self) -> None:
        item = self.stack.pop()
        self.top(list).append(item)

    def appends(self) -> None:
        items = self.marked()
        self.top(list).extend(items)

    def setitem(self) -> None:
        items = self.stack[-2:]
        del self.stack[-2:]
        self.set_items(items)

    def global_(self) -> None:
        name = f"{self.line()}.{self.line()}"
        if name not in self.names:
            raise Refused(name)
        self.stack.append(self.names[name])

    def reduce(self) -> None:
        self._call("call")

    def newobj(self) -> None:
        self._call("new")

    def _call(self, how: str) -> None:
        arguments, name = self.stack.pop(), self.stack.pop()
        function = getattr(name, how) if isinstance(name, Name) else None
        if function is None or type(arguments) is not tuple:
            raise ValueError(f"it calls {name.name if isinstance(name, Name) else short(name)}")
        try:
            value = function(*arguments)
        except TypeError:
            raise ValueError(f"it calls {name.name} with other arguments than torch does") from None
        self.push(value)

    def build(self) -> None:
        state, value = self.stack.pop(), self.stack[-1]
        if hasattr(value, "build"):
            value.build(state)
        elif not isinstance(value, dict):  # the state of an ordered dict says nothing of its items
            raise ValueError(f"it gives a state to {short(value)}")

    def binpersid(self) -> None:
        self.stack.append(self.persistent(self.stack.pop()))


Operation = Callable[[PlainPickle], None]

OPERATIONS: dict[bytes, Operation] = {
    b"X": PlainPickle.binunicode,
    b"q": lambda machine: machine.put(machine.bytes(1)[0]),
    b"r": lambda machine: machine.put(machine.number("<I")),
    b"h": lambda machine: machine.get(machine.bytes(1)[0]),
    b"j": lambda machine: machine.get(machine.number("<I")),
    b"K": lambda machine: machine.stack.append(machine.bytes(1)[0]),
    b"M": lambda machine: machine.stack.append(machine.number("<H")),
    b"J": lambda machine: machine.stack.append(machine.number("<i")),
    b"G": lambda machine: machine.stack.append(machine.number(">d")),
    b"\x8a": PlainPickle.long1,
    b"U": PlainPickle.short_binstring,
    b"N": lambda machine: machine.stack.append(None),
    b"\x88": lambda machine: machine.stack.append(True),
    b"\x89": lambda machine: machine.stack.append(False),
    b"}": lambda machine: machine.push({}),
    b"]": lambda machine: machine.push([]),
    b")": lambda machine: machine.push(()),
    b"\x85": lambda machine: machine.tuple_of(1),
    b"\x86": lambda machine: machine.tuple_of(2),
    b"\x87": lambda machine: machine.tuple_of(3),
    b"t": lambda machine: machine.push(tuple(machine.marked())),
    b"(": lambda machine: machine.marks.append(len(machine.stack)),
    b"a": PlainPickle.append,
    b"e": PlainPickle.appends,
    b"s": PlainPickle.setitem,
    b"u": lambda machine: machine.set_items(machine.marked()),
    b"c": PlainPickle.global_,
    b"R": PlainPickle.reduce,
    b"\x81": PlainPickle.newobj,
    b"b": PlainPickle.build,
    b"Q": PlainPickle.binpersid,
    b"\x80": PlainPickle.proto,
}
