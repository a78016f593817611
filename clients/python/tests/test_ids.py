from __future__ import annotations

import json
import unittest
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable
from uuid import UUID

import firn

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors.json"
WHOLE = VECTORS.with_name("whole.json")


class TestEncodings(unittest.TestCase):
    def test_the_smallest_and_the_largest(self) -> None:
        for form, smallest, largest in (
            ("decimal", "0", "9223372036854775807"),
            ("hex", "0000000000000000", "7fffffffffffffff"),
            ("base32", "0000000000000", "7ZZZZZZZZZZZZ"),
            ("base58", "1", "NQm6nKp8qFC"),
            ("base62", "00000000000", "AzL8n0Y58m7"),
            ("checked", "0-98", "9223372036854775807-58"),
        ):
            self.assertEqual(firn.encode(0, form), smallest)
            self.assertEqual(firn.encode(firn.MAX_ID, form), largest)

    def test_there_and_back(self) -> None:
        for form in firn.ENCODINGS:
            for id in [0, 1, 9, 10, 57, 58, 61, 62, 2**53 + 1, firn.MAX_ID, *(3**i for i in range(39))]:
                self.assertEqual(firn.parse(firn.encode(id, form), form), id, form)

    def test_other_texts(self) -> None:
        for form, texts in {
            "decimal": ["", "007", "+1", "-1", " 1", "1 ", "1.0", "1e3", "1_0", "9223372036854775808", "9" * 5000, "٣"],
            "hex": ["0", "7FFFFFFFFFFFFFFF", "8000000000000000", "0x00000000000000", "00000000000000000"],
            "base32": ["7zzzzzzzzzzzz", "8000000000000", "000000000000I", "000000000000"],
            "base58": ["", "11", "0", "12", "NQm6nKp8qFD", "l"],
            "base62": ["AzL8n0Y58m8", "0", "0000000000-", "zzzzzzzzzzz"],
            "checked": ["", "1", "195", "-95", "1-", "1-9", "1-095", "1-95-95", "1 -95", "9223372036854775808-55", "9" * 5000 + "-95", "(-95"],
        }.items():
            for text in texts:
                with self.assertRaises(ValueError, msg=f"{form} {text:.40}") as raised:
                    firn.parse(text, form)
                want = "all digits, such as 1174" if text in ("1.0", "1e3") else "one such as the largest, " + firn.encode(firn.MAX_ID, form)
                self.assertIn("want " + want, str(raised.exception))

    def test_wrong_check_digits(self) -> None:
        for text in ("1-94", "2-95", "65-00", "32-99", "117465411174400050-32"):
            with self.assertRaisesRegex(ValueError, f"'{text}' has check digits that do not fit its number; want the text exactly"):
                firn.parse(text, "checked")

    def test_what_is_no_id_or_no_encoding(self) -> None:
        for id in (-1, firn.MAX_ID + 1):
            with self.assertRaisesRegex(ValueError, f"{id} in 'hex'; want an ID, 0 to 9223372036854775807"):
                firn.encode(id, "hex")
        for form in ("", "HEX", "uuid"):
            with self.assertRaisesRegex(ValueError, f"1 in '{form}'; want .* in one of decimal, hex, base32, base58, base62, checked"):
                firn.encode(1, form)


    def test_gather(self) -> None:
        for id, scattered in (
            (0, 0),
            (1, 2409217963285410756),
            (1541815603606036480, 7013790311146322595),
            (firn.MAX_ID, 4111756781021975487),
        ):
            self.assertEqual(firn.gather(scattered), id)


class TestLayouts(unittest.TestCase):
    def test_documented_ids(self) -> None:
        for name, id, unix_ms, datacenter, node, node_id, sequence in (
            ("twitter", 1541815603606036480, 1656432460105, 11, 26, 378, 0),  # Wikipedia, Snowflake ID
            ("discord", 175928847299117063, 1462015105796, 1, 0, 32, 7),  # Discord's API reference
            ("snowcast", 44368455009519616, 1393823532000, 0, 1234, 1234, 0),  # snowcast's README
            ("snowcast", 44368455009520639, 1393823532000, 0, 1234, 1234, 1023),
        ):
            p = firn.PRESETS[name].decode(id)
            got = (p.unix_ms, p.datacenter, p.node, p.node_id, p.sequence)
            self.assertEqual(got, (unix_ms, datacenter, node, node_id, sequence))
        self.assertEqual(firn.PRESETS["discord"].decode(175928847299117063).time.isoformat(), "2016-04-30T11:18:25.796000+00:00")

    def test_node_lowest(self) -> None:
        p = firn.Layout.parse("sonyflake").decode(5 << 24 | 3 << 16 | 77)
        self.assertEqual((p.tick, p.sequence, p.node, p.node_id), (5, 3, 77, 77))
        self.assertEqual(p.time, datetime(2014, 9, 1, 0, 0, 0, 50_000, timezone.utc))
        p = firn.Layout(40, 3, 5, 10, node_lowest=True).decode(5 << 18 | 3 << 8 | 2 << 5 | 7)
        self.assertEqual((p.tick, p.sequence, p.datacenter, p.node, p.node_id), (5, 3, 2, 7, 71))

    def test_bits(self) -> None:
        for text, want in (
            ("41/10/12", firn.PRESETS["default"]),
            ("41/5/5/12", firn.Layout(41, 5, 5, 12)),
            ("39/16/8@10ms", firn.Layout(39, 0, 16, 8, 10_000_000)),
            ("62/0/0@1ns", firn.Layout(62, 0, 0, 0, 1)),
            ("31/20/12@1s", firn.Layout(31, 0, 20, 12, 1_000_000_000)),
            ("51/5/7@100us", firn.Layout(51, 0, 5, 7, 100_000)),
        ):
            self.assertEqual(firn.Layout.parse(text), want)
        for text in ("", "41", "41/10", "41/10/12/1/1", "41/10/-1", "42/10/12", "0/10/12", "41/10/12@", "41/10/12@2s",
                     "41/10/12@0ms", "41/10/12@ms", "Twitter", "41/10/12\n", "x" * 1000):  # fmt: skip
            with self.assertRaises(ValueError, msg=text) as raised:
                firn.Layout.parse(text)
            self.assertLess(len(str(raised.exception)), 400)

    def test_what_is_no_id_of_the_layout(self) -> None:
        layout = firn.PRESETS["javascript"]
        self.assertEqual(layout.decode(2**53 - 1).tick, 2**41 - 1)
        for id in (-1, 2**53):
            with self.assertRaisesRegex(ValueError, f"{id} is not an ID of the layout; want 0 to 9007199254740991"):
                layout.decode(id)

    def test_uuid(self) -> None:
        layout = firn.PRESETS["default"]
        uuids = [layout.uuid(id) for id in (0, 1, 118211929127739392, 2**62, firn.MAX_ID)]
        self.assertEqual(uuids, sorted(uuids))
        for id, uuid in zip((0, 1, 118211929127739392, 2**62, firn.MAX_ID), uuids):
            self.assertEqual((uuid.version, uuid.variant), (7, "specified in RFC 4122"))
            self.assertEqual(uuid.int >> 80, layout.decode(id).unix_ms)
            self.assertEqual(layout.from_uuid(uuid), id)
        for bit in [*range(22, 65), *range(76, 128)]:  # below are the node and the sequence, and between them the tag
            with self.assertRaises(ValueError, msg=f"bit {bit}"):
                layout.from_uuid(UUID(int=uuids[2].int ^ 1 << bit))

    def test_first_and_last(self) -> None:
        layout = firn.PRESETS["default"]
        berlin = timezone(timedelta(hours=1))
        for microsecond in (425_000, 425_999):
            at = datetime(2026, 11, 21, 4, 25, 36, microsecond, berlin)
            self.assertEqual((layout.first(at), layout.last(at)), (117465411171123200, 117465411175317503))
        begin = datetime(2026, 1, 1, tzinfo=timezone.utc)
        fine = firn.Layout.parse("50/5/8@10us")
        self.assertEqual(fine.first(begin + timedelta(microseconds=19)), 1 << 13)
        until = "want a time from 2026-01-01 00:00:00+00:00 on, before"
        for layout, time, error in (
            (layout, begin - timedelta(microseconds=1), f"2025-12-31 23:59:59.999999.* lifetime; {until} 2095-09-07 15:47:35.552000"),
            (firn.Layout.parse("62/0/1"), begin - timedelta(microseconds=1), f"{until} the year 10000"),
            (layout, datetime(2026, 11, 21), "2026-11-21 00:00:00 has no time zone; want one"),
            (layout, datetime.max.replace(tzinfo=timezone(-timedelta(hours=23))), "outside the layout's lifetime"),
            (layout, datetime.min.replace(tzinfo=berlin), "outside the layout's lifetime"),
        ):
            for method in (layout.first, layout.last):
                with self.assertRaisesRegex(ValueError, error.replace("+", ".")):
                    method(time)
        for wrong in (1795231536.425, date(2026, 11, 21), "2026-11-21", None):
            with self.assertRaisesRegex(TypeError, f"is of type {type(wrong).__name__}; want a datetime"):
                layout.first(wrong)  # type: ignore[arg-type]

    @unittest.skipUnless(VECTORS.exists(), "only in the repository")
    def test_vectors(self) -> None:
        vectors = json.loads(VECTORS.read_text())
        for texts in vectors["ids"]:
            for form, text in texts.items():
                self.assertEqual(firn.encode(int(texts["decimal"]), form), text)
                self.assertEqual(firn.parse(text, form), int(texts["decimal"]))
        for v in vectors["layouts"]:
            want = firn.Layout(v["time"], v["datacenter"], v["node"], v["sequence"], v["tick_ns"], v["epoch_ms"], v["node_lowest"])
            self.assertEqual(firn.Layout.parse(v["name"]), want)
        for v in vectors["decode"]:
            layout, id = firn.Layout.parse(v["layout"]), int(v["id"])
            p = layout.decode(id)
            self.assertEqual({name: getattr(p, name) for name in v["parts"]}, v["parts"])
            if "uuid" in v:
                self.assertEqual(str(layout.uuid(id)), v["uuid"])
                self.assertEqual(layout.from_uuid(UUID(v["uuid"])), id)
        for v in vectors["not_ids"]:
            self.assertRaises(ValueError, firn.parse, v["text"], v["form"])
        for text in vectors["not_layouts"]:
            self.assertRaises(ValueError, firn.Layout.parse, text)
        for v in vectors["not_decoded"]:
            self.assertRaises(ValueError, firn.Layout.parse(v["layout"]).decode, int(v["id"]))
        with self.assertRaisesRegex(TypeError, "the sequencer is None; want its name, a str"):
            firn.PRESETS["default"].uuid(1, None)  # type: ignore[arg-type]
        for v in vectors["tagged"]:
            layout, id = firn.PRESETS["default"], int(v["id"])
            self.assertEqual(str(layout.uuid(id, v["sequencer"])), v["uuid"])
            self.assertEqual((layout.from_uuid(v["uuid"]), layout.from_uuid(v["uuid"], v["sequencer"])), (id, id))
            with self.assertRaisesRegex(ValueError, "is not the UUID of an ID of this layout and the sequencer 'another'; want"):
                layout.from_uuid(v["uuid"], "another")
        for v in vectors["not_uuids"]:
            self.assertRaises(ValueError, firn.Layout.parse(v["layout"]).from_uuid, v["uuid"])
        self.assertGreater(len(vectors["spans"]), 50)
        for v in vectors["spans"] + vectors["not_spans"]:
            layout, time = firn.Layout.parse(v["layout"]), datetime.strptime(v["time"], "%Y-%m-%dT%H:%M:%S.%f%z")
            if "first" in v:
                self.assertEqual((layout.first(time), layout.last(time)), (int(v["first"]), int(v["last"])), v)
            else:
                self.assertRaisesRegex(ValueError, "is outside the layout's lifetime; want", layout.first, time)


@unittest.skipUnless(WHOLE.exists(), "only in the repository")
class TestWhole(unittest.TestCase):
    """What is not whole is refused in the words of all clients."""

    def test_texts(self) -> None:
        whole = json.loads(WHOLE.read_text())
        for text in whole["not_whole"]:
            with self.assertRaises(ValueError, msg=text) as raised:
                firn.parse(text, "decimal")
            self.assertIn(whole["says"], str(raised.exception))

    def test_numbers(self) -> None:
        whole, layout = json.loads(WHOLE.read_text()), firn.PRESETS["default"]
        uses: list[Callable[[Any], object]] = [
            layout.decode, layout.uuid, firn.gather, lambda id: firn.encode(id, "hex"),
            lambda id: firn.Client(["http://localhost:1"]).convert(id, "hex"),
        ]  # fmt: skip
        for use in uses:
            for number in whole["numbers"]:
                with self.assertRaises(TypeError, msg=number) as raised:
                    use(float(number))
                self.assertIn(whole["says"] + " an int", str(raised.exception))
            for other in (True, None, b"5", Decimal(5), float("nan")):
                with self.assertRaises(TypeError, msg=repr(other)) as raised:
                    use(other)
                self.assertIn("want an int, such as 117465411174400005", str(raised.exception))
        for use in uses[:4]:
            with self.assertRaisesRegex(TypeError, "'5' is of type str; want an int, such as"):
                use("5")
            self.assertEqual(use(Five()), use(5))

    def test_uuids(self) -> None:
        whole, layout = json.loads(WHOLE.read_text()), firn.PRESETS["default"]
        for uuid in whole["uuids"]:
            self.assertEqual(layout.from_uuid(uuid["text"]), int(uuid["id"]), uuid)
        for text in whole["not_uuids"]:
            with self.assertRaisesRegex(ValueError, "is not a UUID; want one such as", msg=text):
                layout.from_uuid(text)


class Five:
    """An integer of another library, as NumPy has them."""

    def __index__(self) -> int:
        return 5
