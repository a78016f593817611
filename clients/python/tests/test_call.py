"""How calls choose nodes: the tests of the Go client, in fake time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import firn
from firn import _core

from .fleet import RESET, FakeTimeCase, Fleet, fails, gives, hangs, now, packed, refuses, says


WHOLE = Path(__file__).parents[2] / "conformance" / "whole.json"


class TestWhatIsRetried(FakeTimeCase):
    async def case(self, name: str, bad: Any, retried: bool) -> None:
        f = Fleet(bad=bad, good=gives(0.001))
        async with f.client() as c:
            try:
                self.assertGreater(await c.next(timeout=1), 1 << 60, name)
            except firn.RefusedError as e:
                self.assertFalse(retried, f"{name} is not retried: {e}")
                self.assertEqual(e.node, "http://bad")
                self.assertEqual(f.requests["good"], 0, name)
                self.assertIsNone(c._issuer("").routes[-1].error, f"{name} is no reason to avoid the node")
            else:
                self.assertTrue(retried, f"{name} is retried")
            self.assertEqual(f.requests["bad"], 1, name)

    async def test_it(self) -> None:
        for name, bad, retried in (
            ("refused or reset", fails(RESET), True),
            ("no answer", hangs, True),
            ("301", says(301, ""), True),
            ("400", refuses(400, "bad_request"), False),
            ("401", refuses(401, "unauthenticated"), False),
            ("401 of a proxy", says(401, "<html>"), False),
            ("403", refuses(403, "forbidden"), False),
            ("404", refuses(404, "unknown_sequencer"), False),
            ("404 of what is no firn node", says(404, "<html>"), True),
            ("408", says(408, ""), True),
            ("409", refuses(409, "exists"), False),
            ("409 of a counter at its end", refuses(409, "exhausted"), False),
            ("409 of a counter after a loss", refuses(409, "lost"), False),
            ("413", refuses(413, "too_large"), False),
            ("429", refuses(429, "rate_limited", retry_after="1"), False),
            ("500", refuses(500, "internal"), True),
            ("502 of a proxy", says(502, "<html>"), True),
            ("503 not_ready", refuses(503, "not_ready", retry_after="1"), True),
            ("503 overloaded", refuses(503, "overloaded"), True),
            ("503 lifetime", refuses(503, "lifetime"), False),
            ("503 without a code", says(503, ""), True),
            ("an error that is a list", says(503, '{"error": []}'), True),
            ("200 that is not packed", says(200, "<html>"), True),
            ("200 cut off", says(200, "1234567"), True),
            ("two IDs", says(200, "\0" * 7 + "\1" + "\0" * 7 + "\2"), True),
            ("zero", says(200, "\0" * 8), True),
            ("204", says(204, ""), True),
        ):
            await self.case(name, bad, retried)

    async def test_wrong_ids(self) -> None:
        for ids in ([-1], [0], [1, 2]):

            async def wrong(f: Fleet, n: int, ids: list[int] = ids) -> Any:
                return packed(ids)

            await self.case(str(ids), wrong, True)

        async def twice(f: Fleet, n: int) -> Any:
            return packed([7, 8, 8])

        async def scattered(f: Fleet, n: int) -> Any:
            return packed([9, 7, 8])

        self.assertEqual(await Fleet(a=scattered).client().take(3), [9, 7, 8])
        f = Fleet(bad=twice, good=gives(0))
        self.assertEqual(len(set(await f.client().take(3))), 3)
        self.assertEqual(f.requests, {"bad": 1, "good": 1})

    async def test_the_error_says_what_the_node_says(self) -> None:
        f = Fleet(a=refuses(429, "rate_limited", retry_after="7"))
        with self.assertRaises(firn.RefusedError) as raised:
            await f.client().next()
        e = raised.exception
        self.assertEqual((e.node, e.status, e.code, e.message), ("http://a", 429, "rate_limited", "so it is"))
        self.assertEqual(e.retry_after, 7)
        self.assertEqual(str(e), "http://a answers 429: rate_limited: so it is")

    async def test_the_error_of_the_token(self) -> None:
        def broken() -> str:
            raise RuntimeError("no token")

        f = Fleet(a=gives(0))
        for error, token in (RuntimeError, broken), (ValueError, lambda: "secret\r\nX: y"):
            with self.assertRaises(error) as raised:
                await f.client(token=token).next(timeout=1)
            self.assertNotIn("secret", str(raised.exception))
        self.assertEqual(f.requests["a"], 0)

    async def test_no_node_answers(self) -> None:
        f = Fleet(a=fails(firn.NodeError("http://a: reset")), b=refuses(503, "not_ready", retry_after="1"), c=hangs)
        began = now()
        with self.assertRaises(firn.NoAnswerError) as raised:
            await f.client().next(timeout=1)
        self.assertAlmostEqual(now() - began, 1)
        want = "no node gave an ID in time; http://a: reset; http://b answers 503: not_ready: so it is; http://c: no answer yet"
        self.assertEqual(str(raised.exception), want)
        for node in "ab":
            self.assertTrue(3 <= f.requests[node] <= 14, f"{node} had {f.requests[node]} requests in a second")
        self.assertEqual(f.requests["c"], _core.MAX_OUT)

    async def test_another_node_learns_the_greatest_id(self) -> None:
        f = Fleet(a=gives(0.0), b=gives(0.0))
        c = f.client("a b")
        last = 0
        for node, told in (("a", False), ("a", False), ("b", True), ("b", False), ("a", True)):
            f.nodes = {"a": fails(RESET), "b": fails(RESET)} | {node: gives(0.0)}
            id = await c.next()
            self.assertEqual(f.fields[-1].get("Firn-After"), str(last) if told else None)
            self.assertGreater(id, last)
            last = id
        f.last = 1000
        await c.next()
        f.nodes = {"a": fails(RESET), "b": gives(0.0)}
        await c.next()  # a smaller ID does not count
        self.assertEqual(f.fields[-1].get("Firn-After"), str(last))
        await c.next("orders")
        self.assertNotIn("Firn-After", f.fields[-1])

    async def test_the_only_node_is_restarted(self) -> None:
        f = Fleet(a=fails(RESET))
        asyncio.get_running_loop().call_later(0.5, f.nodes.update, {"a": gives(0.001)})
        await f.client().next(timeout=1)

    async def test_the_timeout(self) -> None:
        f = Fleet(a=hangs)
        for of_client, of_call, want in (10, None, 10), (3, None, 3), (3, 1, 1):
            began = now()
            with self.assertRaises(TimeoutError):
                await f.client(timeout=of_client).next(timeout=of_call)
            self.assertAlmostEqual(now() - began, want)
        with self.assertRaises(ValueError):
            await f.client().next(timeout=0)
        self.assertEqual(f.requests["a"], 6, "the one without time was sent")

    async def test_the_limit_is_hit_by_a_hedge_of_ones_own(self) -> None:
        f = Fleet(slow=gives(0.5), strict=refuses(429, "rate_limited"))
        await f.client().next(timeout=1)
        self.assertEqual(f.requests["strict"], 1)

    async def test_a_canceled_call(self) -> None:
        f = Fleet(a=hangs)
        events: list[firn.Event] = []
        c = f.client(hook=events.append)
        task = asyncio.ensure_future(c.next())
        await asyncio.sleep(0.01)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        self.assertEqual([e.kind for e in events], ["call", "attempt"])
        self.assertIsInstance(events[1].error, firn.CanceledError)
        await c.aclose()


class TestHealth(FakeTimeCase):
    async def test_a_stopped_node_is_hedged_and_avoided(self) -> None:
        calls: list[firn.Event] = []
        f = Fleet(a=gives(0.001), b=gives(0.001))
        c = f.client(hook=lambda e: calls.append(e) if e.kind == "call" else None)
        for _ in range(100):
            await c.next()
        self.assertEqual(f.requests, {"a": 50, "b": 50})
        f.nodes["b"] = hangs
        calls.clear()
        for _ in range(1000):
            await c.next()
        took = sorted(call.duration for call in calls)
        self.assertLess(took[-1], 0.0121)
        self.assertLess(took[-2], 0.0011)
        self.assertTrue(3 <= f.requests["b"] - 50 <= 6, f"the stopped node had {f.requests['b'] - 50} requests in 1 s")
        f.nodes["b"] = gives(0.001)
        await asyncio.sleep(5)
        await c.next()
        await asyncio.sleep(0.01)
        before = f.requests["b"]
        for _ in range(10):
            await c.next()
        self.assertEqual(f.requests["b"] - before, 5, "it is back")

    async def test_a_slow_node_is_avoided(self) -> None:
        late = canceled = 0

        def hook(e: firn.Event) -> None:
            nonlocal late, canceled
            canceled += e.kind == "attempt" and isinstance(e.error, firn.CanceledError)
            late += e.kind == "attempt" and not e.error and e.duration > 0.19

        f = Fleet(a=gives(0.001), b=gives(0.2))
        c = f.client(hook=hook)
        for _ in range(2000):
            await c.next()
            await asyncio.sleep(0.009)
        self.assertTrue(5 <= f.requests["b"] <= 15, f"{f.requests['b']} requests to the slow node in 20 s")
        await c.aclose()
        self.assertTrue(late >= 5 and canceled <= 1, f"{late} requests to it ended, {canceled} were canceled")

    async def test_the_first_request_goes_on(self) -> None:
        attempts: list[firn.Event] = []
        f = Fleet(b=gives(0.3), a=hangs)
        c = f.client(hook=lambda e: attempts.append(e) if e.kind == "attempt" else None)
        began = now()
        await c.next()
        self.assertAlmostEqual(now() - began, 0.3)
        await c.aclose()
        self.assertEqual((attempts[0].node, attempts[0].hedged, attempts[0].error), ("http://b", False, None))
        self.assertTrue(attempts[1].hedged and isinstance(attempts[1].error, firn.CanceledError))

    async def test_a_request_that_does_not_end_after_another_one_won(self) -> None:
        f = Fleet(a=hangs, b=gives(0.3))
        c = f.client()
        await c.next()
        routes = {r.node.host: r for r in c._issuer("").routes}
        self.assertEqual(routes["a"].failures, 0, "it may be as fast as the other one")
        await asyncio.sleep(1.1)
        self.assertEqual(routes["a"].failures, 1)

    async def test_a_tight_deadline(self) -> None:
        await Fleet(b=hangs, a=gives(0.001)).client().next(timeout=0.03)

    async def test_the_silent_one_is_asked_last(self) -> None:
        f = Fleet(b=hangs, a=fails(RESET))
        asyncio.get_running_loop().call_later(0.1 + 0.006, f.nodes.update, {"a": gives(0.001)})
        await f.client().next()
        self.assertEqual(f.requests["b"], 1)

    async def test_a_request_ends(self) -> None:
        events: list[firn.Event] = []
        f = Fleet(a=hangs)
        with self.assertRaises(firn.NoAnswerError):
            await f.client(hook=events.append).next(timeout=40)
        self.assertAlmostEqual(events[0].duration, _core.ANSWER_WITHIN)

    async def test_patience(self) -> None:
        for a, b, low, high in (
            (0.02, 0.02, 0.02, 0.021),
            (0.02, 0.06, 0.1, 0.15),
            (0.001, 1e-6, 0.01, 0.01),
            (1, 2, 1, 1),
        ):
            known = Fleet(a=hangs).client()._issuer("")
            for _ in range(50):
                known.learn(1, a)
                known.learn(1, b)
            self.assertTrue(low <= known.patience(1) <= high, f"{a}, {b}: {known.patience(1)}")
            self.assertAlmostEqual(known.patience(100_000), 0.6)
        known.learn(2, 0.02)
        self.assertAlmostEqual(known.patience(3), 0.06)

    async def test_backoff(self) -> None:
        calls = 0

        def hook(e: firn.Event) -> None:
            nonlocal calls
            calls += e.kind == "call"

        f = Fleet(a=gives(0.001), b=fails(RESET), c=gives(0.001))
        c = f.client(hook=hook)

        async def count(seconds: float) -> int:
            before, end = f.requests["b"], now() + seconds
            while now() < end:
                await c.next(timeout=1)
                await asyncio.sleep(0.009)
            return f.requests["b"] - before

        n = await count(1)
        self.assertTrue(3 <= n <= 6, f"{n} requests in the first second")
        await count(20)
        n = await count(60)
        self.assertTrue(12 <= n <= 24, f"{n} requests a minute in the long run")
        self.assertEqual(f.requests["a"] + f.requests["c"], calls, "failed probes held calls up")
        f.nodes["b"] = gives(0.001)
        await count(5)
        self.assertGreater(await count(1), 30, "it is back")

    async def test_retry_after_of_a_node(self) -> None:
        f = Fleet(b=refuses(503, "not_ready", retry_after="3"), a=gives(0.001))
        c, began = f.client(), now()
        while now() - began < 2.99:
            await c.next()
        self.assertEqual(f.requests["b"], 1)
        f.nodes["b"] = refuses(503, "not_ready", retry_after="3600")
        while now() - began < 15:
            await c.next()
        self.assertTrue(3 <= f.requests["b"] <= 5, f"{f.requests['b']} requests to a node that asks for too much")

    async def test_a_node_that_closes(self) -> None:
        f = Fleet(b=gives(0.001, leaving=True), a=gives(0.001))
        c = f.client()
        for _ in range(500):
            await c.next()
        self.assertEqual(f.requests, {"a": 499, "b": 1})

    async def test_every_sequencer_has_its_own_nodes(self) -> None:
        async def waits(f: Fleet, n: int) -> Any:
            orders = f.targets[-1] == "/api/v1/sequencers/orders/id"
            return await (refuses(503, "waiting") if orders else gives(0.001))(f, n)

        f = Fleet(b=waits, a=gives(0.001))
        c = f.client()
        await c.next("orders")
        before = f.requests["b"]
        for _ in range(10):
            await c.next()
        self.assertEqual(f.requests["b"] - before, 5)

    async def test_all_nodes_are_slow(self) -> None:
        f = Fleet(a=gives(0.4), b=gives(0.4), c=gives(0.4))
        c = f.client()
        for _ in range(100):
            await c.next()
        self.assertLessEqual(sum(f.requests.values()), 110)

    async def test_the_load_is_spread(self) -> None:
        f = Fleet(a=gives(0.001), b=gives(0.001), c=gives(0.004))
        c = f.client()

        async def caller() -> None:
            for _ in range(100):
                await c.next()

        await asyncio.gather(*(caller() for _ in range(30)))
        self.assertTrue(min(f.requests["a"], f.requests["b"]) >= 1100 and f.requests["c"] >= 200, str(f.requests))


class TestCalls(FakeTimeCase):
    async def test_what_is_asked_for(self) -> None:
        f = Fleet(a=gives(0))
        c = f.client(token=lambda: "" if len(f.fields) % 2 else "t")
        await c.next()
        await c.take(3)
        await c.next("a/../b?c")
        self.assertEqual(await c.take(0), [])
        self.assertEqual(
            f.targets, ["/api/v1/id", "/api/v1/ids?count=3", "/api/v1/sequencers/a%2F..%2Fb%3Fc/id"]
        )
        self.assertEqual([x.get("Authorization") for x in f.fields], ["Bearer t", None, "Bearer t"])
        self.assertEqual(f.fields[0]["Accept"], "application/octet-stream")

    async def test_many(self) -> None:
        async def behind(f: Fleet, n: int) -> Any:
            f.last -= 1 << 30
            return await gives(0)(f, n)

        f = Fleet(a=gives(0), b=behind)
        ids = await f.client().take(250_000)
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual(len(ids), 250_000)
        self.assertEqual(sum(f.requests.values()), 3)

    async def test_texts(self) -> None:
        f = Fleet(a=gives(0))
        c = f.client()
        self.assertEqual(await c.texts(2, "hex"), ["1000000000000001", "1000000000000002"])
        f.nodes["a"] = says(200, '{"ids": ["ord_1", "ord_2"], "ids_str": ["1", "2"]}')
        self.assertEqual(await c.texts(2, "prefixed", "orders"), ["ord_1", "ord_2"])
        f.nodes["a"] = says(200, '{"id": "ord_3"}')
        self.assertEqual(await c.texts(1, "a&b"), ["ord_3"])
        self.assertEqual(f.targets[1:], ["/api/v1/sequencers/orders/ids?count=2&form=prefixed", "/api/v1/id?form=a%26b"])
        self.assertEqual(f.fields[2]["Accept"], "application/json")
        for body in '{"id": 3}', "{}", "[]", "", '{"id": null}':
            f.nodes["a"] = says(200, body)
            with self.assertRaises(firn.NoAnswerError):
                await c.texts(1, "prefixed", timeout=0.1)

    async def test_convert(self) -> None:
        f = Fleet(bad=fails(RESET), a=says(200, '{"id": 7, "text": "1-xyz"}'))
        c = f.client(prefetch=10, max_age=1)
        self.assertEqual(await c.convert(7, "hex", "orders"), "1-xyz")
        self.assertEqual(await c.convert("1-abc", "decimal"), "1-xyz")
        self.assertEqual(await c.convert("7", "hex", as_form="base58"), "1-xyz")
        self.assertEqual(await c.convert(UUID("01a1fc23-5529-7712-81a1-522b4a720005"), "hex"), "1-xyz")
        self.assertEqual(
            sorted(set(f.targets)),
            [
                "GET /api/v1/ids/01a1fc23-5529-7712-81a1-522b4a720005?form=hex",
                "GET /api/v1/ids/1-abc?form=decimal",
                "GET /api/v1/ids/7?as=base58&form=hex",
                "GET /api/v1/sequencers/orders/ids/7?as=decimal&form=hex",
            ],
        )
        f.nodes["a"] = refuses(400, "bad_request")
        with self.assertRaises(firn.RefusedError):
            await c.convert("x", "decimal")

    async def test_what_is_converted(self) -> None:
        whole = json.loads(WHOLE.read_text())
        f = Fleet(a=says(200, '{"id": 7, "text": "1-xyz"}'))
        c = f.client()
        for text in whole["converted"]:
            await c.convert(text, "hex")
        self.assertEqual([unquote(t.removesuffix("?form=hex")) for t in f.targets], ["GET /api/v1/ids/" + t for t in whole["converted"]])
        for text in whole["not_converted"]:
            with self.assertRaises(ValueError, msg=text):
                await c.convert(text, "hex")
        for text in whole["not_whole"]:
            if "." in text:  # base58 has others
                with self.assertRaisesRegex(ValueError, whole["says"]):
                    await c.convert(text, "hex")
        self.assertEqual(len(f.targets), len(whole["converted"]))

    async def test_close(self) -> None:
        f = Fleet(a=gives(0.5))
        c = f.client()
        call = asyncio.ensure_future(c.next())
        await asyncio.sleep(0.1)
        began = now()
        await c.aclose()
        self.assertAlmostEqual(now() - began, 0.4)
        self.assertTrue(call.done() or await call)
        with self.assertRaises(firn.ClosedError):
            await c.next()
        await c.aclose()
