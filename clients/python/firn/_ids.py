"""What is in an ID, and how it is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from uuid import UUID

MAX_ID = 2**63 - 1

# By form: the alphabet, and the characters of every text; 1: as few as possible.
ENCODINGS: dict[str, tuple[str, int]] = {
    "decimal": ("0123456789", 1),
    "hex": ("0123456789abcdef", 16),
    "base32": ("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13),  # Crockford's
    "base58": ("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 1),  # Bitcoin's
    "base62": ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11),
}


def _encoding(form: str) -> tuple[str, int]:
    if form not in ENCODINGS:
        raise ValueError(f"{form!r:.60} is not an encoding; want one of {', '.join(ENCODINGS)}")
    return ENCODINGS[form]


def encode(id: int, form: str) -> str:
    """Return the text of an ID, 0 to MAX_ID, in decimal, hex, base32, base58 or base62; else ValueError is raised."""
    alphabet, width = _encoding(form)
    if not 0 <= id <= MAX_ID:
        raise ValueError(f"{id} is not an ID; want 0 to {MAX_ID}")
    text = ""
    while id or len(text) < width:
        id, digit = divmod(id, len(alphabet))
        text = alphabet[digit] + text
    return text


def parse(text: str, form: str) -> int:
    """Return the ID of a text that encode returns. ValueError is raised for any other: an ID has one text in a form."""
    alphabet, width = _encoding(form)
    id = 0
    for character in text[:20]:
        id = id * len(alphabet) + max(0, alphabet.find(character))
    if id > MAX_ID or text != encode(id, form):
        largest = encode(MAX_ID, form)
        raise ValueError(f"{text!r:.60} is not an ID in {form}; want one such as the largest, {largest}")
    return id


@dataclass(frozen=True)
class Parts:
    """The fields of an ID."""

    tick: int  # since the layout's epoch
    datacenter: int
    node: int
    sequence: int
    node_id: int  # datacenter and node in one number
    unix_ns: int  # when the tick begins, in nanoseconds since 1970

    @property
    def unix_ms(self) -> int:
        """When the tick begins, in milliseconds since 1970, rounded down."""
        return self.unix_ns // 1_000_000

    @property
    def time(self) -> datetime:
        """When the tick begins, in UTC, rounded down to microseconds."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=self.unix_ns // 1000)


@dataclass(frozen=True)
class Layout:
    """How the bits of an ID are split: time | datacenter | node | sequence, from its low end.

    ValueError is raised when the time has no bits, all have more than 63, or the tick is not from 1 ns to 1 s."""

    time_bits: int
    datacenter_bits: int
    node_bits: int
    sequence_bits: int
    tick_ns: int = 1_000_000
    epoch_ms: int = 1_767_225_600_000  # of tick 0, in milliseconds since 1970: 2026-01-01
    node_lowest: bool = False  # time | sequence | datacenter | node

    def __post_init__(self) -> None:
        bits = (self.time_bits, self.datacenter_bits, self.node_bits, self.sequence_bits)
        if min(bits) < 0 or not self.time_bits or sum(bits) > 63 or not 1 <= self.tick_ns <= 1_000_000_000:
            raise ValueError(f"{self}; want 1 bit of time or more, at most 63 bits, and a tick of 1 ns to 1 s")

    @staticmethod
    def parse(text: str) -> Layout:
        """Read the name of one of PRESETS, or bits such as 41/10/12, 41/5/5/12 or, with a tick, 39/16/8@10ms.

        ValueError is raised for any other text, and for a layout that is wrong."""
        if text in PRESETS:
            return PRESETS[text]
        m = re.fullmatch(r"(\d{1,2})/(?:(\d{1,2})/)?(\d{1,2})/(\d{1,2})(?:@(\d{1,9})(ns|us|µs|ms|s))?", text, re.ASCII)
        if not m:
            want = f"one of {', '.join(PRESETS)}, or bits such as 41/10/12, 41/5/5/12 or 39/16/8@10ms"
            raise ValueError(f"layout {text!r:.60}; want {want}")
        unit = {"ns": 1, "us": 1000, "µs": 1000, "s": 1_000_000_000}.get(m[6], 1_000_000)
        return Layout(int(m[1]), int(m[2] or 0), int(m[3]), int(m[4]), tick_ns=int(m[5] or 1) * unit)

    def decode(self, id: int) -> Parts:
        """Return the fields of an ID. ValueError is raised when it is negative or has bits above the layout's."""
        below = self.datacenter_bits + self.node_bits + self.sequence_bits
        if not 0 <= id < 1 << self.time_bits + below:
            raise ValueError(f"{id} is not an ID of the layout; want 0 to {(1 << self.time_bits + below) - 1}")
        tick, rest = divmod(id, 1 << below)
        if self.node_lowest:
            sequence, node_id = divmod(rest, 1 << self.datacenter_bits + self.node_bits)
        else:
            node_id, sequence = divmod(rest, 1 << self.sequence_bits)
        datacenter, node = divmod(node_id, 1 << self.node_bits)
        return Parts(tick, datacenter, node, sequence, node_id, self.epoch_ms * 1_000_000 + tick * self.tick_ns)

    def uuid(self, id: int) -> UUID:
        """Return an ID of the layout as a UUID of version 7, which sorts like the ID. Errors are those of decode."""
        upper = self.decode(id).unix_ms << 16 | 7 << 12 | id >> 62
        return UUID(int=upper << 64 | 2 << 62 | id & (1 << 62) - 1)

    def from_uuid(self, uuid: UUID) -> int:
        """Return the ID that uuid wrote. ValueError is raised for a UUID that is of no ID of the layout."""
        id = (uuid.int >> 64 & 1) << 62 | uuid.int & (1 << 62) - 1
        if self.uuid(id) != uuid:
            raise ValueError(f"{uuid} is not the UUID of an ID of this layout; want {self.uuid(id)} for {id}")
        return id


PRESETS = {
    "default": Layout(41, 0, 10, 12),
    "twitter": Layout(41, 5, 5, 12, epoch_ms=1_288_834_974_657),
    "discord": Layout(41, 5, 5, 12, epoch_ms=1_420_070_400_000),
    "instagram": Layout(40, 0, 13, 10, epoch_ms=1_314_220_021_721),
    "sonyflake": Layout(39, 0, 16, 8, 10_000_000, 1_409_529_600_000, node_lowest=True),
    "snowcast": Layout(40, 0, 13, 10, epoch_ms=1_388_534_400_000),
    "javascript": Layout(41, 0, 5, 7),
}
