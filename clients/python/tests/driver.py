"""The driver for the conformance suite, see clients/conformance/README.md. With --async it drives AsyncClient."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import firn  # noqa: E402


class Driver:
    """Works on requests, each in a thread of its own or, with an async client, in a task."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def act(self, r: dict[str, Any]) -> dict[str, Any]:
        of, do, form = r.get("sequencer", ""), r["do"], r.get("form")
        if do in ("next", "fill") and form:
            return {"ids": await settle(self.client.texts(r.get("count", 1), form, of))}
        if do == "next":
            return {"ids": [str(await settle(self.client.next(of)))]}
        if do == "fill":
            return {"ids": [str(id) for id in await settle(self.client.take(r["count"], of))]}
        if do == "convert":
            return {"ids": [await settle(self.client.convert(r["id"], form, of, as_form=r.get("as", "")))]}
        if do == "decode":
            return {"parts": decode(r)}
        if do == "run":
            return await self.run(of, r["callers"], r["calls"])
        if do == "hooks":
            return dict(counts)
        if do == "close":
            await settle(self.client.aclose() if hasattr(self.client, "aclose") else self.client.close())
            return {"closed": True}
        raise ValueError(f"{do!r} is not a request; want next, fill, convert, decode, run, hooks or close")

    async def run(self, of: str, callers: int, calls: int) -> dict[str, Any]:
        ids: list[str] = []
        failed: list[BaseException] = []

        async def caller() -> None:
            for _ in range(calls):
                try:
                    ids.append(str(await settle(self.client.next(of))))
                except firn.Error as e:
                    failed.append(e)

        if isinstance(self.client, firn.AsyncClient):
            await asyncio.gather(*(caller() for _ in range(callers)))
        else:
            threads = [threading.Thread(target=lambda: drive(caller())) for _ in range(callers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for e in failed[:3]:
            print(f"failed: {e}", file=sys.stderr)
        return {"ids": ids, "failed": len(failed)}

    async def answer(self, r: dict[str, Any]) -> None:
        try:
            a = await self.act(r)
        except Exception as e:
            a = {"error": explain(e)}
        say({"n": r["n"], **a})


async def settle(result: Any) -> Any:
    """Return a result, of a method that is a coroutine or not."""
    return await result if inspect.isawaitable(result) else result


def drive(coroutine: Any) -> None:
    """Run to its end a coroutine that waits for nothing, since all that it calls blocks."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("it waits")


def decode(r: dict[str, Any]) -> dict[str, int]:
    p = firn.Layout.parse(r.get("layout", "default")).decode(firn.parse(r["id"], "decimal"))
    names = ("unix_ms", "tick", "datacenter", "node", "node_id", "sequence")
    return {name: getattr(p, name) for name in names}


def explain(e: Exception) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": "invalid", "message": str(e)}
    if isinstance(e, firn.RefusedError):
        told.update(kind="refused", code=e.code, status=e.status, retry_after_ms=int(e.retry_after * 1000))
    elif isinstance(e, firn.MixedError):
        told["kind"] = "mixed"
    elif isinstance(e, firn.NoAnswerError):
        told["kind"] = "no_answer"
    elif isinstance(e, firn.ClosedError):
        told["kind"] = "closed"
    elif not isinstance(e, (ValueError, TypeError)):
        raise e
    return told


counts = {"attempts": 0, "hedged": 0, "fetched": 0, "expired": 0}


def count(e: firn.Event) -> None:
    counts["attempts"] += e.kind == "attempt"
    counts["hedged"] += e.hedged
    counts["fetched"] += e.wanted if e.kind == "fetch" and not e.error else 0
    counts["expired"] += e.expired


saying = threading.Lock()


def say(answer: dict[str, Any]) -> None:
    with saying:
        print(json.dumps(answer), flush=True)


def open_client(kind: Any, o: dict[str, Any]) -> Any:
    options: dict[str, Any] = {"hook": count, "timeout": o.get("timeout_ms", 10_000) / 1000}
    if "token" in o:
        options["token"] = lambda: o["token"]
    if "ca" in o:
        options["tls"] = ssl.create_default_context(cafile=o["ca"])
    if "prefetch" in o:
        options.update(prefetch=o["prefetch"]["count"], max_age=o["prefetch"]["max_age_ms"] / 1000 if "max_age_ms" in o["prefetch"] else None)
    return kind(o["nodes"], **options)


def drive_threads(d: Driver) -> None:
    ended = threading.Event()

    def answer(r: dict[str, Any]) -> None:
        drive(d.answer(r))
        if r["do"] == "close":
            ended.set()

    threads: list[threading.Thread] = []

    def read() -> None:
        for line in sys.stdin:
            threads.append(threading.Thread(target=answer, args=[json.loads(line)]))
            threads[-1].start()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    ended.wait()
    for thread in threads:
        thread.join()
    d.client.close()


async def drive_tasks(d: Driver) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    async def answer(r: dict[str, Any]) -> None:
        await d.answer(r)
        if r["do"] == "close":
            ended.set()

    def read() -> None:
        for line in sys.stdin:
            asyncio.run_coroutine_threadsafe(answer(json.loads(line)), loop)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=read, daemon=True).start()
    await ended.wait()
    await d.client.aclose()
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})


def main() -> None:
    kind = firn.AsyncClient if "--async" in sys.argv[1:] else firn.Client
    try:
        d = Driver(open_client(kind, json.loads(sys.stdin.readline())))
    except (ValueError, TypeError) as e:
        return say({"error": explain(e)})
    say({"ready": True})
    if kind is firn.AsyncClient:
        asyncio.run(drive_tasks(d))
    else:
        drive_threads(d)
    os._exit(0)  # the thread that reads would not end


main()
