"""One made-up world for all tests of what is fitted."""

import pytest

from .made_up import World, make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))
