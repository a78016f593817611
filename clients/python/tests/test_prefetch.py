"""IDs in memory: the tests of the Go client, in fake time."""

from __future__ import annotations

import asyncio
from typing import Any

import firn

from .fleet import RESET, FakeTimeCase, Fleet, fails, gives, hangs, now, refuses


class TestPrefetch(FakeTimeCase):
    async def test_batches_are_fetched_ahead(self) -> None:
        f = Fleet(a=gives(0.01))
        c = f.client(prefetch=100, max_age=60)
        last = await c.next()
        waited = 0.0
        for i in range(1000):
            if i % 50 == 25:
                await asyncio.sleep(0.02)
            began = now()
            id = await c.next()
            waited += now() - began
            self.assertGreater(id, last)
            last = id
        self.assertEqual(waited, 0)
        self.assertTrue(10 <= f.requests["a"] <= 25, f"{f.requests['a']} requests for 1000 IDs")

    async def test_the_age(self) -> None:
        for after, want in (0.969, 0), (0.971, 99), (1, 99):
            expired = 0

            def hook(e: firn.Event) -> None:
                nonlocal expired
                expired += e.expired

            f = Fleet(a=gives(0.03))
            c = f.client(prefetch=99, max_age=1, hook=hook)
            await c.next()
            await asyncio.sleep(after)
            id = await c.next()
            self.assertLessEqual(now() - f.sent[id], 1)
            await asyncio.sleep(0.1)
            self.assertEqual(expired, want, f"after {after} s")
            await c.aclose()

    async def test_ids_of_before_the_machine_slept(self) -> None:
        for asleep, want in (0.9, 0), (-3600.0, 0), (1.001, 99):  # the second is a wall clock that is set back
            events: list[firn.Event] = []
            f = Fleet(a=gives(0.03))
            c = f.client(prefetch=99, max_age=1, hook=events.append)
            await c.next()
            f.asleep = asleep
            await c.next()
            await asyncio.sleep(0.1)
            self.assertEqual(sum(e.expired for e in events), want, f"after {asleep} s")
            oldest = max(e.age for e in events if e.kind == "call")
            self.assertEqual(oldest > 0.9, asleep == 0.9)
            await c.aclose()

    async def test_the_age_of_many(self) -> None:
        calls: list[firn.Event] = []
        f = Fleet(a=gives(0.03), b=gives(0.07))
        c = f.client(prefetch=100, max_age=1, hook=lambda e: calls.append(e) if e.kind == "call" else None)
        for i in range(500):
            ids = await c.take(1 + i * 7 % 100, timeout=1)
            self.assertEqual(ids, sorted(ids))
            oldest = max(now() - f.sent[id] for id in ids)
            self.assertLessEqual(oldest, 1)
            self.assertAlmostEqual(calls[i].age, oldest)
            await asyncio.sleep(i % 40 * 0.01)

    async def test_the_age_is_kept_when_nodes_are_too_slow(self) -> None:
        f = Fleet(a=gives(0.1))
        with self.assertRaises(firn.NoAnswerError):
            await f.client(prefetch=10, max_age=0.099).next(timeout=1)

    async def test_callers_share_a_fetch(self) -> None:
        f = Fleet(a=gives(0.05))
        c = f.client(prefetch=1000, max_age=60)
        many = await asyncio.gather(*(c.take(1 + i % 3) for i in range(64)))
        ids = [id for ids in many for id in ids]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual(f.requests["a"], 2)

    async def test_under_load(self) -> None:
        expired, oldest = 0, 0.0
        given: set[int] = set()

        def hook(e: firn.Event) -> None:
            nonlocal expired
            expired += e.expired

        f = Fleet(a=gives(0.001), b=gives(0.005), c=fails(RESET))
        c = f.client(prefetch=50, max_age=0.05, hook=hook)

        async def caller(i: int) -> None:
            nonlocal oldest
            for _ in range(100):
                for id in await c.take(i % 4) + [await c.next()]:
                    self.assertNotIn(id, given)
                    given.add(id)
                oldest = max(oldest, now() - f.sent[id])
                await asyncio.sleep(i * i * 0.001)

        await asyncio.gather(*(caller(i) for i in range(20)))
        self.assertLessEqual(oldest, 0.05)
        self.assertGreater(expired, 0, "none expired: the test shows nothing")

    async def test_the_error_of_a_fetch(self) -> None:
        f = Fleet(a=refuses(404, "unknown_sequencer"))
        c = f.client(prefetch=10, max_age=60)
        results = await asyncio.gather(*(c.next() for _ in range(8)), return_exceptions=True)
        self.assertEqual([getattr(r, "status", r) for r in results], [404] * 8)
        self.assertEqual(f.requests["a"], 1)
        f.nodes["a"] = gives(0.001)
        await c.next()

    async def test_a_refill_fails(self) -> None:
        failed = 0

        def hook(e: firn.Event) -> None:
            nonlocal failed
            failed += e.kind == "fetch" and e.error is not None

        f = Fleet(a=gives(0.001))
        c = f.client(prefetch=100, max_age=60, hook=hook)
        for _ in range(40):
            await c.next()
        f.nodes["a"] = refuses(429, "rate_limited", retry_after="5")
        for _ in range(61):
            await c.next()
            await asyncio.sleep(0.05)
        self.assertEqual(failed, 1)
        with self.assertRaises(firn.RefusedError):
            await c.next()

    async def test_a_fetch_fails_before_the_time_of_its_caller_is_over(self) -> None:
        f = Fleet(a=fails(RESET))
        asyncio.get_running_loop().call_later(12, f.nodes.update, {"a": gives(0.001)})
        began = now()
        await f.client(prefetch=10, max_age=60).next(timeout=30)
        self.assertTrue(12 <= now() - began <= 14, f"it took {now() - began} s")

    async def test_a_caller_gives_up(self) -> None:
        f = Fleet(a=gives(0.1))
        c = f.client(prefetch=10, max_age=60)
        results = await asyncio.gather(c.next(timeout=0.05), c.next(), return_exceptions=True)
        self.assertEqual(str(results[0]), "no node gave an ID in time; http://a: no answer yet")
        self.assertIsInstance(results[1], int)
        self.assertLessEqual(f.requests["a"], 2)

    async def test_a_caller_is_canceled(self) -> None:
        f = Fleet(a=gives(0.1))
        c = f.client(prefetch=10, max_age=60)
        first, second = asyncio.ensure_future(c.next()), asyncio.ensure_future(c.next())
        await asyncio.sleep(0.05)
        first.cancel()
        await second
        self.assertTrue(first.cancelled())
        self.assertEqual(c._issuer("").wanted, 0)

    async def test_many_of_two_batches_ascend(self) -> None:
        async def behind(f: Fleet, n: int) -> Any:
            f.last -= 1 << 30
            return await gives(0.001)(f, n)

        f = Fleet(a=behind)
        c = f.client(prefetch=10, max_age=60)
        for _ in range(20):
            ids = await c.take(7)
            self.assertEqual(ids, sorted(ids))

    async def test_more_than_in_memory(self) -> None:
        f = Fleet(a=gives(0))
        await f.client(prefetch=10, max_age=60).take(11)
        self.assertEqual(f.targets, ["/api/v1/ids?count=11"])

    async def test_close_during_a_fetch(self) -> None:
        f = Fleet(a=gives(0.01))
        c = f.client(prefetch=10, max_age=60)
        await c.take(8)
        f.nodes["a"] = hangs
        await c.take(1)
        began = now()
        await c.aclose()
        self.assertEqual(now(), began)
        with self.assertRaises(firn.ClosedError):
            await c.next()
