"""Nodes without a network, and an event loop whose clock stands still while anything is left to do."""

from __future__ import annotations

import asyncio
import json
import selectors
import struct
import unittest
import unittest.mock
from typing import Any, Awaitable, Callable

import firn
from firn._http import PACKED, Answer, Node

Behaviour = Callable[["Fleet", int], Awaitable[Answer]]


class FakeSelector(selectors.DefaultSelector):
    loop: FakeLoop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise AssertionError("everybody waits, and nothing will happen")
            self.loop.now += timeout
        return ready


class FakeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer when nothing is left to do."""

    now = 1000.0

    def __init__(self) -> None:
        selector = FakeSelector()
        selector.loop = self
        super().__init__(selector)
        self._clock_resolution = 1e-9
        self.clients: list[firn.AsyncClient] = []

    def time(self) -> float:
        return self.now


class Fleet:
    """Nodes by their host. It is the transport of its clients."""

    def __init__(self, **nodes: Behaviour) -> None:
        self.nodes = nodes
        self.requests = dict.fromkeys(nodes, 0)
        self.targets: list[str] = []
        self.fields: list[dict[str, str]] = []
        self.last = 1 << 60
        self.asleep = 0.0  # how long the machine slept, which only the wall clock has counted
        self.sent: dict[int, float] = {}  # when the request for an ID came

    async def send(self, node: Node, request: str, fields: dict[str, str], n: int) -> Answer:
        self.requests[node.host] += 1
        self.targets.append(request.partition(" ")[2] if request.startswith("POST ") else request)
        self.fields.append(fields)
        return await self.nodes[node.host](self, n)

    def close(self) -> None:
        pass

    def client(self, nodes: str = "", **options: Any) -> firn.AsyncClient:
        """Return a client of these nodes, by default all, whose clock is the loop's."""
        c = firn.AsyncClient(["http://" + host for host in nodes.split() or self.nodes], **options)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, FakeLoop)
        loop.clients.append(c)
        c._bind(loop)
        c._now = loop.time
        c._ahead = lambda: self.asleep
        c._transport = self  # type: ignore[assignment]
        return c


def packed(ids: list[int]) -> Answer:
    return Answer(200, {"content-type": PACKED}, struct.pack(f">{len(ids)}q", *ids), False)


def gives(takes: float, leaving: bool = False) -> Behaviour:
    """Return a node that works."""

    async def behave(f: Fleet, n: int) -> Answer:
        came = asyncio.get_running_loop().time()
        await asyncio.sleep(takes)
        ids = [f.last + i for i in range(1, n + 1)]
        f.last += n
        f.sent.update(dict.fromkeys(ids, came))
        return packed(ids)._replace(leaving=leaving)

    return behave


def says(status: int, body: str, **fields: str) -> Behaviour:
    async def behave(f: Fleet, n: int) -> Answer:
        return Answer(status, {k.replace("_", "-"): v for k, v in fields.items()}, body.encode(), False)

    return behave


def refuses(status: int, code: str, **fields: str) -> Behaviour:
    return says(status, json.dumps({"error": {"code": code, "message": "so it is"}}), **fields)


def fails(error: Exception) -> Behaviour:
    async def behave(f: Fleet, n: int) -> Answer:
        raise error

    return behave


RESET = firn.NodeError("connection reset by peer")


async def hangs(f: Fleet, n: int) -> Answer:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("somebody has answered")


def now() -> float:
    return asyncio.get_running_loop().time()


def patient(test: unittest.TestCase) -> None:
    """Keep calls from asking twice in tests in real time, however slow the machine is."""
    for name in ("FIRST_PATIENCE", "SHORTEST_PATIENCE", "LONGEST_PATIENCE"):
        patch = unittest.mock.patch.object(firn._core, name, 60.0)
        patch.start()
        test.addCleanup(patch.stop)


class FakeTimeCase(unittest.TestCase):
    """Tests that are coroutines run in a FakeLoop of their own."""

    def _callTestMethod(self, method: Any) -> None:
        result = method()
        if not asyncio.iscoroutine(result):
            return
        loop = FakeLoop()
        try:
            loop.run_until_complete(result)
            for c in loop.clients:
                loop.run_until_complete(c.aclose())
        finally:
            loop.close()
