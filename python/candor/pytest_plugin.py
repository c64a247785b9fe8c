"""A fixture for pytest: candor_server, a server with the shipped model, or with the one that CANDOR_MODEL names."""

from __future__ import annotations

import os
from typing import Iterator

import pytest

from .model import shipped_model
from .server import Server, serve


@pytest.fixture(scope="session")
def candor_server() -> Iterator[Server]:
    with serve(os.environ.get("CANDOR_MODEL") or shipped_model()) as server:
        yield server
