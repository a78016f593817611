"""HTTP over real connections, to a node that answers by a script."""

from __future__ import annotations

import asyncio
import os
import struct
import tempfile
import unittest
from typing import Any

import firn

from .fleet import patient


def answer(ids: list[int], more: str = "", status: str = "200 OK") -> bytes:
    body = struct.pack(f">{len(ids)}q", *ids)
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


class Node:
    """Answers the requests of each connection with the next bytes; an empty answer closes the connection."""

    def __init__(self, *connections: list[bytes]) -> None:
        self.connections = list(connections)
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for reply in self.connections.pop(0):
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(reply)
            await writer.drain()
            if writer.is_closing() or reply and not reply.endswith(b"EOF"):
                await reader.read()  # until the client closes
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class TestConnections(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        patient(self)

    async def ask(self, node: Node, calls: int = 1, count: int = 1, **options: Any) -> list[Any]:
        """Return what calls give one after the other."""
        server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
        self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        try:
            async with firn.AsyncClient([self.url], timeout=5, **options) as c:
                return [await c.take(count) for _ in range(calls)]
        finally:
            server.close()

    async def test_a_connection_is_kept(self) -> None:
        node = Node([answer([5]), answer([6]), answer([7])])
        self.assertEqual(await self.ask(node, 3), [[5], [6], [7]])
        host = self.url.partition("://")[2]
        want = f"POST /api/v1/id HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nAccept: application/octet-stream\r\n\r\n"
        self.assertEqual(node.requests, [want.encode()] * 3)

    async def test_chunks(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        ids = struct.pack(">3q", 5, 6, 7)
        chunks = b"3;x=y\r\n" + ids[:3] + b"\r\n15\r\n" + ids[3:] + b"\r\n0\r\nA: b\r\n\r\n"
        self.assertEqual(await self.ask(Node([head + chunks, answer([8, 9, 10])]), 2, 3), [[5, 6, 7], [8, 9, 10]])

    async def test_the_node_closed_an_idle_connection(self) -> None:
        """Also when the request had been sent already: it does no harm to send it again."""
        node = Node([answer([5]), b""], [answer([6]) + b"EOF"[:0]])
        attempts: list[firn.Event] = []
        self.assertEqual(await self.ask(node, 2, hook=attempts.append), [[5], [6]])
        self.assertEqual([e.error for e in attempts], [None] * 4)

    async def test_the_node_says_that_it_closes(self) -> None:
        node = Node([answer([5], "Connection: close\r\n") + b""], [answer([6])])
        self.assertEqual(await self.ask(node, 2), [[5], [6]])

    async def test_wrong_answers(self) -> None:
        """Each on a connection of its own, which is not used again; then one is right."""
        for wrong in (
            b"",
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 2OO OK\r\n\r\n",
            b"HTTP/2 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n1234EOF",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"4000\r\n%s\r\n" % (b"x" * 0x4000) * 9,
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 17) + b"\r\n\r\n",
        ):
            events: list[firn.Event] = []
            node = Node([wrong], [answer([5])])
            self.assertEqual(await self.ask(node, hook=events.append), [[5]], wrong[:60])
            self.assertIsInstance(events[0].error, firn.NodeError, wrong[:60])

    async def test_an_error_without_a_length(self) -> None:
        with self.assertRaises(firn.RefusedError) as raised:
            await self.ask(Node([b"HTTP/1.0 403 Forbidden\r\n\r\n<html>EOF"]))
        self.assertEqual(str(raised.exception), f"{self.url} answers 403 Forbidden")

    async def test_an_error_that_is_too_long(self) -> None:
        head = b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
        for body in b"fffffff\r\n", b"4000\r\n%s\r\n" % (b"x" * 0x4000) * 9:
            with self.assertRaises(firn.RefusedError):
                await self.ask(Node([head + body]))

    async def test_a_unix_socket(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            node = Node([answer([5])])
            server = await asyncio.start_unix_server(node.serve, path)
            async with firn.AsyncClient(["unix:" + path], timeout=5) as c:
                self.assertEqual(await c.next(), 5)
            self.assertIn(b"Host: localhost\r\n", node.requests[0])
            server.close()

    async def test_nobody_listens(self) -> None:
        async with firn.AsyncClient(["http://127.0.0.1:1", "unix:/nowhere"]) as c:
            with self.assertRaisesRegex(firn.NoAnswerError, "http://127.0.0.1:1: .*; unix:/nowhere: .*No such file"):
                await c.next(timeout=1)


class TestArguments(unittest.TestCase):
    def test_nodes(self) -> None:
        wrong: list[tuple[list[str], str]] = [
            ([], "at least one"),
            (["ids-1:8080"], "node 1 is not a URL such as"),
            (["http://a", "ftp://b"], "node 2 is not a URL such as"),
            (["http://user:secret@a"], "node 1 is not a URL"),
            (["http://a/api"], "node 1"),
            (["http://a?b"], "node 1"),
            (["http://"], "node 1"),
            (["http://a:"], "node 1"),
            (["unix:relative"], "node 1"),
            (["http://a b"], "node 1"),
            (["http://a\r\n"], "node 1"),
            (["http://a", "http://A:80/"], "each once"),
        ]
        for nodes, want in wrong:
            with self.assertRaisesRegex(ValueError, want, msg=str(nodes)) as raised:
                firn.Client(nodes)
            self.assertNotIn("secret", str(raised.exception))
        for good in ("http://a", "https://a.b-c:8443/", "http://[::1]:8080", "http://127.0.0.1", "unix:/run/firn.sock"):
            firn.Client([good])

    def test_prefetch(self) -> None:
        for prefetch, max_age in ((-1, 1), (100_001, 1), (10, 0), (10, -1), (0, 1)):
            with self.assertRaisesRegex(ValueError, f"prefetch={prefetch}, max_age={max_age}; want 1 to 100000"):
                firn.Client(["http://a"], prefetch=prefetch, max_age=max_age)
