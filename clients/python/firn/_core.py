"""What both clients do, in an event loop: choose nodes, ask another one when one is slow, and keep IDs in memory."""

from __future__ import annotations

import asyncio
import math
import os
import random
import re
import ssl
import threading
import time
import weakref
from collections import Counter, deque
from operator import index
from typing import Any, Callable, Coroutine, NamedTuple, Sequence
from urllib.parse import quote
from uuid import UUID

from ._clusters import Clusters
from ._errors import CanceledError, ClosedError, NoAnswerError, NodeError, is_final
from ._http import PACKED, Node, Transport, parse_nodes, read_ids
from ._ids import ENCODINGS, encode, parse, whole

# Times are in seconds. What they are for is told in docs/clients.md of the repository.
MAX_COUNT = 100_000  # IDs that a node gives at once
DEFAULT_TIMEOUT, ANSWER_WITHIN = 10.0, 15.0  # of a call, of a request
DEFAULT_MAX_AGE = 2.0  # of IDs in memory
FIRST_PATIENCE, PATIENCE_PER_ID = 0.1, 5e-6  # before another node is asked, while nothing is known
SHORTEST_PATIENCE, LONGEST_PATIENCE = 0.01, 1.0
FIRST_AVOIDED, LONGEST_AVOIDED = 0.1, 5.0  # after failures of a node in a row
FIRST_PAUSE, LONGEST_PAUSE = 0.025, 1.0  # of a call after all nodes have failed
LEAVING = 1.0  # for which a node is avoided that closes its connections, because it is about to stop
LINGERS = 1.0  # for which a request goes on after another one has won: it shows whether its node works
REFILL_REST = 1.0  # for which nothing is fetched after a failed fetch, unless a call waits
MAX_OUT = 2  # requests of one call to one node at a time; the second helps when the connection of the first is dead


class Event(NamedTuple):
    """What the client has done: a request to a node (attempt), a call, or a fetch of IDs into memory."""

    kind: str  # "attempt", "call" or "fetch"
    sequencer: str  # empty: the default one
    wanted: int  # how many IDs were asked for
    duration: float  # seconds
    error: BaseException | None  # None: it has given all IDs
    node: str = ""  # of an attempt: its URL
    hedged: bool = False  # of an attempt: another request of the same call had no answer yet
    age: float = 0.0  # of a call: that of the oldest ID, in seconds since before its request was sent
    expired: int = 0  # of a fetch: how many IDs were dropped since the one before, because they were too old


def check_timeout(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout={timeout}; want above 0 s")


def backoff(first: float, longest: float, failures: int) -> float:
    """Return the pause after so many earlier failures in a row. Chance keeps many callers from returning at once."""
    return min(first * 2.0 ** min(failures, 62), longest) * random.uniform(0.5, 1)


class Route:
    """A node as one sequencer sees it: it may give IDs of one sequencer and not of another."""

    def __init__(self, node: Node) -> None:
        self.node, self.in_flight, self.failures = node, 0, 0
        self.until = -math.inf  # the node is avoided until then, and after failures until it gives IDs again
        self.error: Exception | None = None  # of the last failure; None: the node works

    def rank(self, now: float) -> tuple[bool, float]:
        """Return what is least for the best node: one with few requests; of avoided ones, whose pause ends first."""
        avoided = self.failures > 0 or now < self.until
        return avoided, self.until if avoided else self.in_flight

    def fails(self, now: float, error: Exception | None, least: float = 0.0) -> None:
        """Avoid the node, for least seconds or longer. A failure within the pause after another one is not counted."""
        self.error = error
        if self.failures == 0 or now >= self.until:
            self.until = now + backoff(FIRST_AVOIDED, LONGEST_AVOIDED, self.failures)
            self.failures += 1
        self.until = max(self.until, now + min(least, LONGEST_AVOIDED))

    def slow(self, now: float, took: float) -> None:
        self.fails(now, NodeError(f"{self.node.url}: slower than other nodes: {took:.3f} s"))


class Call:
    """Asks one node after the other for IDs, or for a text in another form, and several at once when they are slow."""

    def __init__(self, issuer: Issuer, n: int, form: str = "", text: str | None = None) -> None:
        self.issuer, self.n, self.form, self.text, self.now = issuer, n, form, text, issuer.base._now
        self.patience = issuer.patience(n)
        self.bar = 0.0  # once a request has won, the time after which another one counts as slow
        self.live: dict[asyncio.Future[Any], tuple[Route, float, bool]] = {}  # when asked; only to see if it works
        self.out: Counter[Route] = Counter()  # requests without an answer
        self.tried: set[Route] = set()  # in this round
        self.failed: dict[Route, Exception] = {}  # the last errors

    async def run(self, deadline: float) -> tuple[list[Any], float]:
        """Return IDs, and the time before their request was sent."""
        patience, pauses, pausing = self.patience, 0, False
        refused: Exception | None = None  # is raised when no attempt succeeds
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def after(pause: float) -> float:  # or after half of the time left, so that some is left for another node
            now = self.now()
            return min(now + min(pause, max((deadline - now) / 2, SHORTEST_PATIENCE)), deadline)

        try:
            if self.now() < deadline:
                self.next()
                due = (r for r in self.issuer.routes if r.failures and r.until <= self.now() and r not in self.tried)
                self.ask(next(due, None), probe=True)
            wake = after(patience)
            while True:
                live, pause = [*self.live] or [never], max(0.0, wake - self.now())
                done, _ = await asyncio.wait(live, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    route, asked, probe = self.live.pop(task)
                    self.out[route] -= 1
                    result = task.result()
                    if isinstance(result, list):
                        self.issuer.learn(self.n, self.won(asked))
                        return result, asked
                    self.failed[route] = result
                    if getattr(result, "status", 0) == 429 and self.live:
                        refused = result  # perhaps only because this call has sent more than one request
                    elif is_final(result):
                        self.won(asked)
                        raise result
                    elif not refused and not (probe and self.live) and not self.next() and not pausing:
                        pausing, pauses, wake = True, pauses + 1, after(backoff(FIRST_PAUSE, LONGEST_PAUSE, pauses))
                if refused and not self.live:
                    raise refused
                if self.now() >= deadline:
                    raise refused or self.issuer.no_answer(self.failed)
                if self.now() >= wake:
                    if not refused and not self.next():
                        self.tried = {r for r in self.out if self.out[r] >= MAX_OUT}
                        self.next()
                    pausing, patience = False, min(2 * patience, LONGEST_PATIENCE)
                    wake = after(patience)
        finally:
            for task in self.live:
                asyncio.get_running_loop().call_later(LINGERS if self.bar else 0, task.cancel)

    def next(self) -> bool:
        """Ask another node: of those with the fewest requests of this call the best, in turn. False: none is left."""
        now, routes = self.now(), self.issuer.routes
        best = min((r for r in routes if r not in self.tried), key=lambda r: (self.out[r], *r.rank(now)), default=None)
        if best:
            routes.remove(best)
            routes.append(best)
        return self.ask(best)

    def ask(self, route: Route | None, probe: bool = False) -> bool:
        if route:
            if probe:
                route.fails(self.now(), route.error)  # so that there is no other probe
            route.in_flight += 1
            self.out[route] += 1
            self.tried.add(route)
            asked = self.now()
            task = self.issuer.base._spawn(self.attempt(route, asked, bool(self.live)))
            timer = task.get_loop().call_later(ANSWER_WITHIN, task.cancel)
            task.add_done_callback(lambda _: timer.cancel())
            self.live[task] = route, asked, probe
        return route is not None

    async def attempt(self, route: Route, asked: float, hedged: bool) -> list[Any] | Exception:
        """Return IDs of a node, or what went wrong. It may outlive the call."""
        issuer, leaving = self.issuer, False
        result: list[Any] | Exception
        try:
            result, leaving = await issuer.send(route.node, self.n, self.form, self.text)
        except asyncio.CancelledError:
            result = CanceledError(f"{route.node.url}: given up")
        except Exception as e:
            result = e
        route.in_flight -= 1
        now, error = self.now(), result if isinstance(result, Exception) else None
        took, canceled = now - asked, isinstance(result, CanceledError)
        if not error and not 0 < self.bar < took:
            route.failures, route.error, route.until = 0, None, now + LEAVING if leaving else -math.inf
        elif not error or canceled and took > max(self.bar, self.patience):
            route.slow(now, took)
        elif not canceled and not is_final(error):
            route.fails(now, error, getattr(error, "retry_after", 0.0))
        issuer.base._report(Event("attempt", issuer.name, self.n, took, error, route.node.url, hedged))
        return result

    def won(self, asked: float) -> float:
        """Avoid the nodes that are slower than the winner of the call. Return how long that took."""
        now = self.now()
        self.bar = max(self.patience, 2 * (now - asked))
        for route, since, _ in self.live.values():
            if now - since > self.bar:
                route.slow(now, now - since)
        return now - asked


class Issuer:
    """Takes IDs of one sequencer."""

    def __init__(self, base: Base, name: str) -> None:
        self.base, self.name = base, name
        self.path = "/api/v1/" + (f"sequencers/{quote(name, safe='')}/" if name else "")
        self.forget()

    def forget(self) -> None:
        self.routes: list[Route] = [Route(node) for node in self.base._nodes]  # in turn
        self.seen: tuple[int, Node | None] = 0, None  # the greatest ID that a node gave, and that node
        self.paces: dict[int, tuple[float, float]] = {}  # of requests for 1, 2 to 3, 4 to 7 IDs and so on
        self.stock: deque[tuple[int, float, float]] = deque()  # IDs, when asked for, how far the wall clock was ahead
        self.lock = threading.Lock()  # guards the stock, and the next one
        self.expired = 0  # how many were dropped from the stock, and not reported yet
        self.wanted = 0  # how many calls wait for
        self.rest = -math.inf  # until then nothing is fetched, unless a call waits
        self.called = False  # refill
        self.fetching: asyncio.Task[Exception | None] | None = None

    def patience(self, n: int) -> float:
        """Return the time within which nearly every answer with n IDs comes."""
        if n.bit_length() not in self.paces:
            return FIRST_PATIENCE + n * PATIENCE_PER_ID
        mean, deviation = self.paces[n.bit_length()]
        return min(max(mean + 4 * deviation, SHORTEST_PATIENCE), LONGEST_PATIENCE)

    def learn(self, n: int, took: float) -> None:
        """Count the time of an answer: a moving average and the deviation from it, as TCP has it (RFC 6298)."""
        mean, deviation = self.paces.get(n.bit_length(), (took, took * 2 / 3))  # which leaves half of it
        self.paces[n.bit_length()] = mean + (took - mean) / 8, deviation + (abs(took - mean) - deviation) / 4

    async def convert(self, id: int | str | UUID, form: str, as_form: str, timeout: float | None) -> str:
        id = str(id) if isinstance(id, UUID) else id
        text = id if isinstance(id, str) else str(whole(id))
        if not re.fullmatch(r"\ufeff?[\w{}:-]+", text, re.ASCII):
            if "." in text:
                parse(text, "decimal")  # raises an error that says what is wrong with a floating-point number
            raise ValueError(f"{text!r} is not an ID in any form")
        as_form = as_form if isinstance(id, str) else "decimal"
        text = quote(text, safe="") + (f"?as={quote(as_form, safe='')}" if as_form else "")
        return str((await self.call(1, timeout, form, text))[0])

    async def call(self, count: int, timeout: float | None, form: str = "", text: str | None = None) -> list[Any]:
        if form in ENCODINGS and text is None:
            return [encode(id, form) for id in await self.call(count, timeout)]
        base = self.base
        if index(count) < 0:
            raise ValueError(f"{count} IDs; want 0 or more")
        check_timeout(timeout)
        if base._closed:
            raise ClosedError("the client is closed")
        base._check_loop()
        call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        base._calls.add(call)
        ids: list[Any] = []
        began, oldest = base._now(), math.inf
        deadline = began + (base._timeout if timeout is None else timeout)
        error: BaseException | None = None
        try:
            while len(ids) < count:
                n, stocked = min(count - len(ids), MAX_COUNT), count <= base._prefetch and not form
                more, asked = await (self.wait(n, deadline) if stocked else Call(self, n, form, text).run(deadline))
                ids, oldest = ids + more, min(oldest, asked)
            return sorted(ids) if count > MAX_COUNT and not form else ids  # they may be from several nodes
        except BaseException as e:
            error = e
            raise
        finally:
            call.set_result(None)
            base._calls.remove(call)
            now = base._now()
            base._report(Event("call", self.name, count, now - began, error, age=0 if error else max(0, now - oldest)))

    async def wait(self, n: int, deadline: float) -> tuple[list[int], float]:
        """Return n IDs of the stock, once there are so many, and the time of the oldest."""
        self.wanted += n
        try:
            while True:
                taken = self.take(n)
                if taken:
                    return taken
                fetch = self.refill()
                assert fetch
                done, _ = await asyncio.wait([fetch], timeout=max(0.0, deadline - self.base._now()))
                if not done:
                    raise self.no_answer({r: r.error for r in self.routes if r.error})
                error = fetch.result()
                if error and is_final(error):
                    raise error
        finally:
            self.wanted -= n

    def take(self, n: int) -> tuple[list[int], float] | None:
        """Return n IDs of the stock, if there are so many, and have more fetched. Any thread may call it."""
        with self.lock:
            now, ahead, loop = self.base._now(), self.base._ahead(), self.base._loop
            while self.stock and now - self.asked(ahead) > self.base._max_age:
                self.stock.popleft()
                self.expired += 1
            if len(self.stock) < n:
                return None
            first = self.asked(ahead)
            ids, asked, _ = zip(*(self.stock.popleft() for _ in range(n)))
            if loop and not loop.is_closed() and not self.called and self.wants(now):
                self.called = True
                loop.call_soon_threadsafe(self.refill)
        return sorted(ids) if asked[0] != asked[-1] else [*ids], first  # they may be from several nodes

    def asked(self, ahead: float) -> float:
        """Return when the oldest ID of the stock was asked for.

        The monotonic clock stands still while the machine sleeps, and in a snapshot of its memory. What only the wall
        clock has counted since then, by how far that is ahead now, has passed too."""
        _, asked, before = self.stock[0]
        return asked - max(0.0, ahead - before)

    def wants(self, now: float) -> int:
        """Return how many IDs to fetch."""
        left, most = len(self.stock), self.base._prefetch
        if self.fetching or not self.wanted and (left > most // 2 or now < self.rest):
            return 0
        return min(most - left + self.wanted, MAX_COUNT)

    def refill(self) -> asyncio.Task[Exception | None] | None:
        self.called = False
        n = self.wants(self.base._now())
        if n:
            self.fetching = self.base._spawn(self.fetch(n))
        return self.fetching

    async def fetch(self, n: int) -> Exception | None:
        """Add n IDs to the stock, or return what went wrong."""
        began, ahead, error = self.base._now(), self.base._ahead(), None
        try:
            ids, asked = await Call(self, n).run(began + DEFAULT_TIMEOUT)
            with self.lock:
                self.stock.extend((id, asked, ahead) for id in ids)
        except Exception as e:
            error = e
            self.rest = self.base._now() + max(REFILL_REST, getattr(e, "retry_after", 0.0))
        self.fetching = None
        with self.lock:
            expired, self.expired = self.expired, 0
        self.base._report(Event("fetch", self.name, n, self.base._now() - began, error, expired=expired))
        return error

    async def send(self, node: Node, n: int, form: str, text: str | None) -> tuple[list[Any], bool]:
        """Return n IDs of a node, or the text in another form, and whether it closes the connection."""
        request, key = f"POST {self.path}" + ("id" if n == 1 else f"ids?count={n}"), "id" if n == 1 else "ids"
        if text is not None:
            request, key = f"GET {self.path}ids/{text}", "text"
        if form:
            request += ("&" if "?" in request else "?") + f"form={quote(form)}"
        fields = {"Accept": "application/json" if form else PACKED}
        token = self.base._token() if self.base._token else ""
        if token:
            fields["Authorization"] = f"Bearer {token}"
        if not re.fullmatch("[!-~]*", token):
            raise ValueError("the token has a character that is not a visible one of ASCII")
        greatest, at = self.seen
        if text is None and greatest and node != at:  # the new ones are to exceed it
            fields["Firn-After"] = str(greatest)
        answer = await self.base._transport.send(node, request, fields, n)
        self.base._clusters.take(node.url, answer.fields.get("firn-cluster", ""))
        ids = read_ids(node, answer, n, key if form else "")
        if not form and max(ids) > self.seen[0]:
            self.seen = max(ids), node
        return ids, answer.leaving

    def no_answer(self, errors: dict[Route, Exception]) -> Exception:
        routes = sorted(self.routes, key=lambda r: self.base._nodes.index(r.node))
        return NoAnswerError([errors.get(r) or NodeError(f"{r.node.url}: no answer yet") for r in routes])


class Base:
    """What the clients have in common.

    nodes are URLs such as http://ids-1:8080, or unix:/run/firn/firn.sock. token returns a bearer token, and is called
    for every request. tls says which certificates to accept; by default, those that the system trusts. With prefetch,
    1 to 100000, so many IDs of each sequencer are kept in memory, and none is returned that is older than max_age
    seconds (2 by default), by the monotonic clock or the wall clock, whichever has counted more: one stands still while the machine
    sleeps. timeout, in seconds, is that of calls without one. hook gets every event; it must be quick, raise nothing
    and not call the client. ValueError is raised when an argument is wrong, TypeError when one is of a wrong type."""

    def __init__(
        self, nodes: Sequence[str], *, token: Callable[[], str] | None = None, tls: ssl.SSLContext | None = None,
        prefetch: int = 0, max_age: float | None = None, timeout: float = DEFAULT_TIMEOUT,
        hook: Callable[[Event], None] | None = None,
    ) -> None:
        if max_age is None:
            max_age = DEFAULT_MAX_AGE if prefetch else 0.0
        if not 0 <= prefetch <= MAX_COUNT or bool(prefetch) != (max_age > 0):
            raise ValueError(f"prefetch={prefetch}, max_age={max_age}; want 1 to {MAX_COUNT} and above 0 s, or neither")
        check_timeout(timeout)
        self._nodes, self._token, self._timeout, self._hook = parse_nodes(nodes), token, timeout, hook
        self._prefetch, self._max_age, self._now = prefetch, max_age, time.monotonic
        self._ahead: Callable[[], float] = lambda: time.time() - time.monotonic()  # the wall clock, of the other one
        self._tls = tls or (ssl.create_default_context() if any(node.tls for node in self._nodes) else None)
        self._closing = False  # for other threads, while calls are in progress that they have begun
        self._closed = False
        self._clusters = Clusters()
        self._issuers: dict[str, Issuer] = {}
        self._bind(None)
        _clients.add(self)

    def _issuer(self, name: str) -> Issuer:
        return self._issuers.get(name) or self._issuers.setdefault(name, Issuer(self, name))

    def _bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Begin anew: connections and IDs in memory are not for another event loop, nor for a forked process."""
        self._loop, self._lock = loop, threading.Lock()
        self._transport = Transport(self._nodes, self._tls)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._calls: set[asyncio.Future[None]] = set()
        for issuer in self._issuers.values():
            issuer.forget()

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            self._bind(asyncio.get_running_loop())

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _report(self, event: Event) -> None:
        if self._hook:
            self._hook(event)

    async def _end(self) -> None:
        """Wait for the calls in progress, and end all requests."""
        self._check_loop()
        self._closed = True
        if self._calls:
            await asyncio.wait(set(self._calls))
        for task in set(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        self._transport.close()
        await asyncio.sleep(0)  # for the connections to be closed


_clients: weakref.WeakSet[Base] = weakref.WeakSet()


def _after_fork() -> None:
    for client in _clients:
        client._bind(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
