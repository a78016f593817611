"""Unique, time-ordered 64-bit IDs from the nodes of a firn service.

    with firn.Client(["http://ids-1:8080", "http://ids-2:8080"]) as ids:
        id = ids.next()

AsyncClient does the same for asyncio."""

from ._client import AsyncClient, Client
from ._core import Event
from ._errors import CanceledError, ClosedError, Error, MixedError, NoAnswerError, NodeError, RefusedError
from ._ids import ENCODINGS, MAX_ID, PRESETS, Layout, Parts, encode, gather, parse

__version__ = "0.1.0"
__all__ = [
    "AsyncClient", "CanceledError", "Client", "ClosedError",
    "ENCODINGS", "Error", "Event", "Layout", "MAX_ID", "MixedError", "NoAnswerError", "NodeError", "PRESETS", "Parts",
    "RefusedError", "encode", "gather", "parse",
]
