"""Properties that are computed once, also if several threads ask for them at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, overload

T = TypeVar("T")


class once(cached_property[T]):
    """A cached property with a lock, which `cached_property` has only before Python 3.12.

    A value that is in the cache is read without the lock.
    """

    def __init__(self, compute: Callable[[Any], T]):
        super().__init__(compute)
        self._computing = threading.RLock()

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> once[T] | T:
        if instance is None:
            return self
        with self._computing:
            return super().__get__(instance, owner)
