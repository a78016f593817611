"""What is in an ID, and how it is written."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from operator import index
from typing import NamedTuple
from uuid import UUID

MAX_ID = 2**63 - 1
UNIX = datetime(1970, 1, 1, tzinfo=timezone.utc)
ENCODINGS = {  # by form: the alphabet, and the characters of every text; 1: as few as possible
    "decimal": ("0123456789", 1),
    "hex": ("0123456789abcdef", 16),
    "base32": ("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13),  # Crockford's
    "base58": ("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 1),  # Bitcoin's
    "base62": ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11),
    "checked": ("0123456789", 1),  # then a hyphen and two check digits, by ISO 7064 MOD 97-10
}


LOSSY = "a floating-point number, whose last digits may be lost"
UUID_TEXT = r"(?:urn:uuid:)?({0}-{1}-{1}-{1}-{0}{1})|\{{({0}-{1}-{1}-{1}-{0}{1})\}}|({0}{1}{1}{1}{0}{1})".format("[0-9a-f]{8}", "[0-9a-f]{4}")


def whole(id: int) -> int:
    """Return an ID, of any type of integers. TypeError is raised for what is none: a float does not hold an ID."""
    if isinstance(id, bool) or not hasattr(id, "__index__"):
        wrong = LOSSY if isinstance(id, float) else f"of type {type(id).__name__}"
        raise TypeError(f"{id!r:.60} is {wrong}; want an int, such as 117465411174400005")
    return index(id)


def encode(id: int, form: str) -> str:
    """Return the text of an ID, 0 to MAX_ID, in one of ENCODINGS; else ValueError is raised."""
    id = whole(id)
    if not 0 <= id <= MAX_ID or form not in ENCODINGS:
        raise ValueError(f"{id} in {form!r:.60}; want an ID, 0 to {MAX_ID}, in one of {', '.join(ENCODINGS)}")
    (alphabet, width), text = ENCODINGS[form], ""
    check = f"-{98 - id * 100 % 97:02}" if form == "checked" else ""
    while id or len(text) < width:
        id, digit = divmod(id, len(alphabet))
        text = alphabet[digit] + text
    return text + check


def parse(text: str, form: str) -> int:
    """Return the ID of a text that encode returns. ValueError is raised for any other: an ID has one text in a form."""
    largest, id = encode(MAX_ID, form), 0
    alphabet = ENCODINGS[form][0]
    number, _, check = text.partition("-") if form == "checked" else (text, "", "")
    for character in number[:20]:
        id = id * len(alphabet) + max(0, alphabet.find(character))
    if form == "decimal" and re.fullmatch(r"(?=.*[.eE])\d+(\.\d*)?([eE][+-]?\d+)?", text, re.ASCII):
        raise ValueError(f"{text!r:.60} is {LOSSY}; want all digits, such as 117465411174400005")
    if id <= MAX_ID and number == str(id) and re.fullmatch("[0-9]{2}", check) and text != encode(id, form):
        raise ValueError(f"{text!r:.60} has check digits that do not fit its number; want the text exactly as it was made")
    if id > MAX_ID or text != encode(id, form):
        raise ValueError(f"{text!r:.60} is not an ID in {form}; want one such as the largest, {largest}")
    return id


def gather(id: int) -> int:
    """Return the ID from which a sequencer with scattered IDs has made one, for Layout.decode."""
    id = whole(id)
    for _ in range(2):
        id = (id ^ id >> 32) * 2812876173790338467 & MAX_ID
    return id ^ id >> 32


class Parts(NamedTuple):
    """The fields of an ID."""

    tick: int  # since the layout's epoch
    datacenter: int
    node: int
    sequence: int
    node_id: int  # datacenter and node in one number
    unix_ms: int  # when the tick begins, in milliseconds since 1970, rounded down

    @property
    def time(self) -> datetime:
        """That in UTC. OverflowError is raised after the year 9999."""
        return UNIX + timedelta(milliseconds=self.unix_ms)


class Layout(NamedTuple):
    """How the bits of an ID are split: time | datacenter | node | sequence, from its low end."""

    time_bits: int
    datacenter_bits: int
    node_bits: int
    sequence_bits: int
    tick_ns: int = 1_000_000
    epoch_ms: int = 1_767_225_600_000  # of tick 0, in milliseconds since 1970: 2026-01-01
    node_lowest: bool = False  # time | sequence | datacenter | node

    @staticmethod
    def parse(text: str) -> Layout:
        """Read the name of one of PRESETS, or bits such as 41/10/12, 41/5/5/12 or, with a tick, 39/16/8@10ms.

        ValueError is raised for any other text, without time bits, for more than 63 bits, and for a tick above 1 s."""
        m = re.fullmatch(r"(\d{1,2})/(?:(\d{1,2})/)?(\d{1,2})/(\d{1,2})(?:@(\d{1,9})(ns|us|µs|ms|s))?", text, re.ASCII)
        if text in PRESETS:
            return PRESETS[text]
        if m:
            unit = {"ns": 1, "us": 1000, "µs": 1000, "s": 1_000_000_000}.get(m[6], 1_000_000)
            layout = Layout(int(m[1]), int(m[2] or 0), int(m[3]), int(m[4]), int(m[5] or 1) * unit)
            if layout.time_bits and sum(layout[:4]) <= 63 and 1 <= layout.tick_ns <= 1_000_000_000:
                return layout
        want = f"one of {', '.join(PRESETS)}, or at most 63 bits such as 41/10/12, 41/5/5/12 or 39/16/8@10ms"
        raise ValueError(f"layout {text!r:.60}; want {want}")

    def decode(self, id: int) -> Parts:
        """Return the fields of an ID. ValueError is raised when it is negative or has bits above the layout's.

        TypeError is raised for a float, which does not hold an ID, and for what is no int."""
        id, below = whole(id), sum(self[1:4])
        if not 0 <= id < 1 << self.time_bits + below:
            raise ValueError(f"{id} is not an ID of the layout; want 0 to {(1 << self.time_bits + below) - 1}")
        tick, rest = divmod(id, 1 << below)
        if self.node_lowest:
            sequence, node_id = divmod(rest, 1 << self.datacenter_bits + self.node_bits)
        else:
            node_id, sequence = divmod(rest, 1 << self.sequence_bits)
        datacenter, node = divmod(node_id, 1 << self.node_bits)
        return Parts(tick, datacenter, node, sequence, node_id, self.epoch_ms + tick * self.tick_ns // 1_000_000)

    def first(self, time: datetime) -> int:
        """Return the smallest ID that any node can make in the tick that holds a time, for queries of a range of time.

        ValueError is raised for a time without a time zone, and for one that the layout has no IDs for; TypeError for
        what is no datetime. The IDs of a sequencer that scatters them do not lie in the order of their time."""
        if not isinstance(time, datetime):
            raise TypeError(f"{time!r:.60} is of type {type(time).__name__}; want a datetime with a time zone")
        if time.utcoffset() is None:
            raise ValueError(f"{time} has no time zone; want one, as datetime.now(timezone.utc) has")
        tick = ((time - UNIX) // timedelta(microseconds=1) * 1000 - self.epoch_ms * 1_000_000) // self.tick_ns
        if not 0 <= tick < 1 << self.time_bits:
            begin = UNIX + timedelta(milliseconds=self.epoch_ms)
            try:
                end = str(begin + timedelta(microseconds=(self.tick_ns << self.time_bits) // 1000))
            except OverflowError:
                end = "the year 10000"
            raise ValueError(f"{time} is outside the layout's lifetime; want a time from {begin} on, before {end}")
        return tick << sum(self[1:4])

    def last(self, time: datetime) -> int:
        """Return the greatest ID that any node can make in the tick that holds a time. Errors are those of first."""
        return self.first(time) | (1 << sum(self[1:4])) - 1

    def uuid(self, id: int, sequencer: str = "default") -> UUID:
        """Return an ID of the layout as a UUID of version 7, which sorts like the ID. Errors are those of decode.

        It has the tag of the sequencer that made the ID, as nodes write it."""
        id = whole(id)
        upper = self.decode(id).unix_ms << 16 | 7 << 12 | tag(sequencer) << 1 | id >> 62
        return UUID(int=upper << 64 | 2 << 62 | id & (1 << 62) - 1)

    def from_uuid(self, uuid: UUID | str, sequencer: str | None = None) -> int:
        """Return the ID that uuid wrote. ValueError is raised for a UUID that is of no ID of the layout, or of another
        sequencer than one that is named.

        The text of a UUID may be without hyphens, in braces, or behind urn:uuid:, and in either case."""
        if isinstance(uuid, str):
            if not re.fullmatch(UUID_TEXT, uuid, re.ASCII | re.IGNORECASE):
                raise ValueError(f"{uuid!r:.60} is not a UUID; want one such as 01a1fc23-5529-7000-81a1-522b4a720005")
            uuid = UUID(uuid.lower())
        id = (uuid.int >> 64 & 1) << 62 | uuid.int & (1 << 62) - 1
        want, any_tag = self.uuid(id, sequencer or "default"), TAGS << 65 if sequencer is None else 0
        if want.int != uuid.int & ~any_tag:
            of = "this layout" if sequencer is None else f"this layout and the sequencer {sequencer!r}"
            raise ValueError(f"{uuid} is not the UUID of an ID of {of}; want {want} for {id}")
        return id


TAGS = 2047


def tag(sequencer: str) -> int:
    """Return the tag of a sequencer's name in a UUID: 0 to 2047. firn's uuid.go explains it."""
    if not isinstance(sequencer, str):
        raise TypeError(f"the sequencer is {sequencer!r:.60}; want its name, a str")
    if sequencer in ("", "default"):
        return 0
    hash = 2166136261
    for byte in sequencer.encode():
        hash = (hash ^ byte) * 16777619 & 0xFFFFFFFF
    return 1 + hash % TAGS


PRESETS = {
    "default": Layout(41, 0, 10, 12),
    "twitter": Layout(41, 5, 5, 12, epoch_ms=1_288_834_974_657),
    "discord": Layout(41, 5, 5, 12, epoch_ms=1_420_070_400_000),
    "instagram": Layout(40, 0, 13, 10, epoch_ms=1_314_220_021_721),
    "sonyflake": Layout(39, 0, 16, 8, 10_000_000, 1_409_529_600_000, node_lowest=True),
    "snowcast": Layout(40, 0, 13, 10, epoch_ms=1_388_534_400_000),
    "javascript": Layout(41, 0, 5, 7),
}
