"""The client for threads, with real connections."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import struct
import threading
import unittest
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import firn

from .fleet import patient


class TestArguments(unittest.TestCase):
    def test_what_is_wrong(self) -> None:
        for nodes in "http://a", b"http://a":
            with self.assertRaisesRegex(TypeError, "nodes is one text; want a list of URLs"):
                firn.Client(nodes)  # type: ignore[arg-type]
        wrong: list[dict[str, Any]] = [{"prefetch": 10, "max_age": 0}, {"prefetch": -1}, {"prefetch": 100_001}, {"max_age": 1}]
        for options in wrong + [{"timeout": t} for t in (0, -1, float("nan"))]:
            with self.assertRaisesRegex(ValueError, "; want ", msg=str(options)):
                firn.Client(["http://a"], **options)
        self.assertEqual(firn.Client(["http://a"], prefetch=10)._max_age, 2)
        with firn.Client(["http://localhost:1"]) as ids:
            for timeout in 0, -1, float("nan"):
                with self.assertRaisesRegex(ValueError, "timeout=.*; want above 0 s"):
                    ids.next(timeout=timeout)
            with self.assertRaisesRegex(ValueError, "-1 IDs; want 0 or more"):
                ids.take(-1)
            with self.assertRaises(TypeError):
                ids.take(1.5)  # type: ignore[arg-type]
            self.assertEqual(ids.take(0), [])


class Server(ThreadingHTTPServer):
    """A node that gives IDs, while it is open."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.last = 0
        self.requests: list[str] = []
        self.connections = 0
        self.guard = threading.Lock()
        self.open, self.asked = threading.Event(), threading.Event()
        self.open.set()
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def __exit__(self, *_: Any) -> None:
        self.open.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_GET(self) -> None:
        self.reply(200, json.dumps({"id": 1, "text": "so it is"}).encode())

    def do_POST(self) -> None:
        self.server.asked.set()
        self.server.open.wait(10)
        query = parse_qs(urlsplit(self.path).query)
        n = int(query.get("count", ["1"])[0])
        with self.server.guard:
            self.server.requests.append(self.path)
            first = self.server.last + 1
            self.server.last += n
        status, body = 200, struct.pack(f">{n}q", *range(first, first + n))
        if "nothing" in self.path:
            status = 404
            body = json.dumps({"error": {"code": "unknown_sequencer", "message": "there is none"}}).encode()
        elif "form" in query:
            body = json.dumps({"id": f"{query['form'][0]}-{first}"}).encode()
        self.reply(status, body)

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class TestClient(unittest.TestCase):
    def setUp(self) -> None:
        patient(self)

    def test_calls(self) -> None:
        with Server() as s, firn.Client([s.url]) as ids:
            self.assertEqual(ids.next(), 1)
            self.assertEqual(ids.take(3, "orders"), [2, 3, 4])
            self.assertEqual(ids.texts(2, "hex"), ["0000000000000005", "0000000000000006"])
            self.assertEqual(ids.take(0), [])
            with self.assertRaisesRegex(ValueError, "-1 IDs; want 0 or more"):
                ids.take(-1)
            self.assertEqual(ids.texts(1, "uuid"), ["uuid-7"])
            self.assertEqual(ids.convert(7, "uuid"), "so it is")
            with self.assertRaises(firn.RefusedError) as raised:
                ids.next("nothing")
            self.assertEqual((raised.exception.status, raised.exception.code), (404, "unknown_sequencer"))

    def test_threads(self) -> None:
        every: list[dict[str, Any]] = [{}, {"prefetch": 500, "max_age": 60}]
        for options in every:
            given: list[int] = []
            with Server() as s, firn.Client([s.url], **options) as ids:

                def caller(i: int) -> None:
                    for _ in range(25):
                        given.append(ids.next())
                        given.extend(ids.take(i % 3))

                threads = [threading.Thread(target=caller, args=[i]) for i in range(64)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
            self.assertEqual(len(given), 64 * 25 + 25 * (21 * 3 + 0))
            self.assertEqual(len(given), len(set(given)))

    def test_prefetch(self) -> None:
        with Server() as s, firn.Client([s.url], prefetch=100, max_age=60) as ids:
            self.assertEqual([ids.next() for _ in range(1000)], list(range(1, 1001)))
            self.assertLessEqual(len(s.requests), 30)

    def test_close_waits_for_calls(self) -> None:
        with Server() as s:
            ids = firn.Client([s.url])
            given: list[int] = []
            s.open.clear()
            caller = threading.Thread(target=lambda: given.append(ids.next()))
            caller.start()
            s.asked.wait()
            closer = threading.Thread(target=ids.close)
            closer.start()
            closer.join(0.05)
            self.assertTrue(closer.is_alive())
            s.open.set()
            closer.join()
            caller.join()
            self.assertEqual(len(given), 1)
            with self.assertRaises(firn.ClosedError):
                ids.next()
            with self.assertRaises(firn.ClosedError):
                ids.texts(1, "hex")
            ids.close()

    def test_close_drops_the_ids_in_memory(self) -> None:
        with Server() as s:
            ids = firn.Client([s.url], prefetch=100, max_age=60)
            ids.next()
            ids.close()
            with self.assertRaises(firn.ClosedError):
                ids.next()

    def test_close_of_a_client_that_has_done_nothing(self) -> None:
        ids = firn.Client(["http://127.0.0.1:1"])
        ids.close()
        with self.assertRaises(firn.ClosedError):
            ids.next()

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_begins_anew(self) -> None:
        """Otherwise both would return the IDs in memory, and read each other's answers."""
        with Server() as s, firn.Client([s.url], prefetch=100, max_age=60) as ids, firn.Client([s.url]) as direct:
            given = [ids.next() for _ in range(10)] + [direct.next()]
            opened = s.connections
            reading, writing = os.pipe()
            with direct._lock:  # which another thread may hold
                child = os.fork()
                if not child:
                    try:
                        signal.alarm(20)
                        warnings.simplefilter("ignore")
                        own = [ids.next(timeout=5) for _ in range(10)] + [direct.next(timeout=5)]
                        gc.collect()
                        ids.close()
                        os.write(writing, json.dumps(own).encode())
                    finally:
                        os._exit(0)
            os.close(writing)
            with open(reading) as f:
                given += json.loads(f.read())
            os.waitpid(child, 0)
            given += [ids.next() for _ in range(10)] + [direct.next()]
            self.assertEqual(len(set(given)), 33)
            self.assertEqual(s.connections, opened + 2, "the parent's connections work as before")

    def test_async_in_one_loop_after_the_other(self) -> None:
        with Server() as s:
            ids = firn.AsyncClient([s.url], prefetch=10, max_age=60)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # a loop that has ended can't close its connections
                self.assertEqual(len({asyncio.run(ids.next()), asyncio.run(ids.next())}), 2)
                asyncio.run(ids.aclose())
                gc.collect()
            with self.assertRaises(firn.ClosedError):
                asyncio.run(ids.next())

    def test_the_hook(self) -> None:
        events: list[firn.Event] = []
        with Server() as s, firn.Client([s.url], hook=events.append) as ids:
            ids.take(5)
        self.assertEqual([(e.kind, e.wanted, e.node, e.error) for e in events], [("attempt", 5, s.url, None), ("call", 5, "", None)])
