"""The two clients: for asyncio, and, with an event loop on a thread of its own, for everything else."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Coroutine, TypeVar
from uuid import UUID

from ._core import Base, check_timeout
from ._errors import ClosedError

T = TypeVar("T")


class Client(Base):
    """Client for programs without asyncio. Any thread may use it."""

    def next(self, sequencer: str = "", *, timeout: float | None = None) -> int:
        """Return an ID of a sequencer, by default of the default one. State is kept for each: no names from strangers.

        It waits for timeout seconds, by default those of the client. RefusedError is raised as soon as a node refuses
        for a reason that the caller must fix: a wrong token (401, 403), an unknown sequencer (404), more IDs than a
        limit allows (429, with retry_after), or a layout whose time has run out (503 lifetime). MixedError is raised when
        nodes of several clusters answer, NoAnswerError when no node has given IDs in time, and ClosedError after the
        client was closed."""
        return self.take(1, sequencer, timeout=timeout)[0]

    def take(self, count: int, sequencer: str = "", *, timeout: float | None = None) -> list[int]:
        """Return count IDs, in the order in which they were made. The errors are those of next."""
        check_timeout(timeout)
        issuer, at_hand = self._issuer(sequencer), 0 < count <= self._prefetch and not self._closing and not self._hook
        taken = issuer.take(count) if at_hand else None
        return taken[0] if taken else self._run(issuer.call(count, timeout))

    def texts(self, count: int, form: str, sequencer: str = "", *, timeout: float | None = None) -> list[str]:
        """Return the texts of count IDs. A form that is not one of ENCODINGS is made by a node, and not prefetched."""
        return self._run(self._issuer(sequencer).call(count, timeout, form))

    def convert(
        self, id: int | str | UUID, form: str, sequencer: str = "", *, as_form: str = "", timeout: float | None = None
    ) -> str:
        """Return an ID, or a text in any form, as a text in another form. A node makes it, and opens sealed ones.

        as_form is the form of the text; without it a node refuses a text that is an ID in several forms."""
        return self._run(self._issuer(sequencer).convert(id, form, as_form, timeout))

    def close(self) -> None:
        """Wait for the calls in progress, and end all requests. Later calls raise ClosedError."""
        with self._lock:
            loop = None if self._closing else self._loop
            self._closing = True
        if loop:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._closing:
                call.close()
                raise ClosedError("the client is closed")
            if not self._loop:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=[self._loop], name="firn", daemon=True).start()
            future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # if the caller was interrupted


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


class AsyncClient(Base):
    """Client for asyncio; it works in one event loop at a time. Arguments, results and errors are those of Client."""

    async def next(self, sequencer: str = "", *, timeout: float | None = None) -> int:
        ids: list[int] = await self._issuer(sequencer).call(1, timeout)
        return ids[0]

    async def take(self, count: int, sequencer: str = "", *, timeout: float | None = None) -> list[int]:
        return await self._issuer(sequencer).call(count, timeout)

    async def texts(self, count: int, form: str, sequencer: str = "", *, timeout: float | None = None) -> list[str]:
        return await self._issuer(sequencer).call(count, timeout, form)

    async def convert(
        self, id: int | str | UUID, form: str, sequencer: str = "", *, as_form: str = "", timeout: float | None = None
    ) -> str:
        return await self._issuer(sequencer).convert(id, form, as_form, timeout)

    async def aclose(self) -> None:
        await self._end()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
