"""Fixtures that many tests share."""

from __future__ import annotations

import socket

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
