"""HTTP/1.1 over asyncio's streams, and what nodes answer."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import struct
import time
from asyncio import StreamReader, StreamReaderProtocol, WriteTransport
from typing import Any, NamedTuple, Sequence

from ._errors import NodeError, RefusedError

PACKED = "application/octet-stream"  # IDs of 8 bytes each, big-endian
IDLE_FOR, MAX_IDLE = 90.0, 256  # connections to each node, which closes idle ones after two minutes
AROUND_IDS, PER_ID = 64 << 10, 100  # limits on answers, in bytes


class Node(NamedTuple):
    """Where a node is, with the path of its Unix socket if it has one."""

    url: str
    host: str
    port: int
    tls: bool
    path: str | None


def parse_nodes(urls: Sequence[str]) -> list[Node]:
    nodes: list[Node] = []
    if isinstance(urls, (str, bytes)):
        raise TypeError("nodes is one text; want a list of URLs, such as ['http://ids-1:8080']")
    for i, text in enumerate(urls, start=1):
        m = re.fullmatch(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^][\s/?#@:]+)(?::([0-9]{1,5}))?/?|unix:(/.+)", text)
        if not m:  # the text is not shown, since it may hold a password
            raise ValueError(f"node {i} is not a URL such as http://ids-1:8080, or unix:/run/firn/firn.sock")
        tls, host = m[1] == "https", (m[2] or "localhost").lower().strip("[]")
        nodes.append(Node(text.rstrip("/"), host, int(m[3] or (443 if tls else 80)), tls, m[4]))
    if not nodes or len({node[1:] for node in nodes}) < len(nodes):
        raise ValueError(f"nodes {', '.join(n.url for n in nodes) or '(none)'}; want at least one, and each once")
    return nodes


class Answer(NamedTuple):
    status: int
    fields: dict[str, str]  # by name, in lower case
    body: bytes
    leaving: bool  # the node closes the connection


async def _read(reader: StreamReader, limit: int) -> Answer:
    """Read an answer. A body that has no length, or more bytes than the limit, is left out."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    if not re.match("HTTP/1.[01] [2-5][0-9][0-9]", first):
        raise ValueError(f"{first!r:.60} is not the beginning of an answer over HTTP/1.1")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    leaving, chunked = "close" in fields.get("connection", "").lower(), fields.get("transfer-encoding") == "chunked"
    size, body = int(fields.get("content-length", limit + 1)), b""
    while True:
        if chunked:
            size = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        if not 0 <= size <= limit - len(body):
            return Answer(int(first[9:12]), fields, b"", True)
        body += await reader.readexactly(size)
        while chunked and await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # fields after the last chunk
        if not (chunked and size):
            return Answer(int(first[9:12]), fields, body, leaving)


class Transport:
    """Sends requests, and keeps idle connections."""

    def __init__(self, nodes: Sequence[Node], tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._idle: dict[Node, list[tuple[StreamReader, WriteTransport, float]]] = {node: [] for node in nodes}

    async def send(self, node: Node, request: str, fields: dict[str, str], n: int) -> Answer:
        """Send a request for n IDs. NodeError is raised when there is no answer."""
        fields = {"Host": node.url.partition("://")[2] or "localhost", "Content-Length": "0", **fields}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        idle = self._idle[node]
        while True:
            reused, keep, writer = bool(idle), False, None
            try:
                reader, writer, used = idle.pop() if reused else (*await self._open(node), time.monotonic())
                if reused and (reader.at_eof() or time.monotonic() - used > IDLE_FOR):
                    continue
                writer.write(f"{request} HTTP/1.1\r\n{head}\r\n".encode())
                answer = await _read(reader, AROUND_IDS + n * PER_ID)
                keep = not answer.leaving and len(idle) < MAX_IDLE
                return answer
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as e:
                closed = isinstance(e, ConnectionError) or isinstance(e, asyncio.IncompleteReadError) and not e.partial
                if not (reused and closed):  # else the node had closed it while it was idle
                    raise NodeError(f"{node.url}: {e or 'the connection was reset'}") from e
            finally:
                if writer and keep:
                    idle.append((reader, writer, time.monotonic()))
                elif writer:
                    writer.abort()

    async def _open(self, node: Node) -> tuple[StreamReader, WriteTransport]:
        """Open a connection. It has no StreamWriter, whose end in a forked process would harm the parent's."""
        loop, reader = asyncio.get_running_loop(), StreamReader()
        protocol = StreamReaderProtocol(reader)
        if node.path:
            return reader, (await loop.create_unix_connection(lambda: protocol, node.path))[0]
        tls = self._tls if node.tls else None
        return reader, (await loop.create_connection(lambda: protocol, node.host, node.port, ssl=tls))[0]

    def close(self) -> None:
        for _, writer, _ in (connection for idle in self._idle.values() for connection in idle):
            writer.abort()
        self._idle = {node: [] for node in self._idle}


def read_ids(node: Node, answer: Answer, n: int, key: str) -> list[Any]:
    """Return the n IDs of an answer, or its texts at a key. RefusedError or NodeError is raised if it has none."""
    try:
        found = json.loads(answer.body) if key or answer.status != 200 else {}
        if answer.status == 200:
            ids = (found[key] if key == "ids" else [found[key]]) if key else struct.unpack(f">{n}q", answer.body)
            if len(ids) == len(set(ids)) == n and all(isinstance(id, str) if key else id > 0 for id in ids):
                return list(ids)
        code, message = str(found["error"]["code"])[:1000], str(found["error"]["message"])[:1000]
    except (ValueError, KeyError, TypeError, struct.error):
        code = message = ""  # it is not from a firn node, or wrong
    if answer.status == 200:
        raise NodeError(f"{node.url}: wrong answer: {answer.body!r:.60}; want {n} different IDs above zero")
    after = answer.fields.get("retry-after", "")
    seconds = float(after) if re.fullmatch("[0-9]{1,9}", after) else 0.0
    raise RefusedError(node.url, answer.status, code, message, seconds)
