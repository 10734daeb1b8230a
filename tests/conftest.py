"""Fixtures that many tests share."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from minicheck_eval.errors import ModelUnavailable


@pytest.fixture(scope="session")
def nano():
    """The embedded judge; tests that need it are skipped where its weights cannot be had."""
    from minicheck_eval.judge import open_judge

    try:
        return open_judge("minicheck-nano")
    except ModelUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def no_network(monkeypatch):
    """Make every connection to anything but this process an error."""

    def refuse(self, address, *_):
        raise AssertionError(f"a connection to {address} was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **_: refuse(None, a))


@pytest.fixture(scope="session")
def shared():
    """The folder of labelled data and reference numbers beside the checkout; tests that need it are skipped without."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder
