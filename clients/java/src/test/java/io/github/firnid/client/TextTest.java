package io.github.firnid.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Encodings and layouts. */
final class TextTest {
    static void testEncodings() {
        var texts = Map.of(
                Encoding.DECIMAL, List.of("0", "1541815603606036480", "9223372036854775807"),
                Encoding.HEX, List.of("0000000000000000", "1565a11f6217a000", "7fffffffffffffff"),
                Encoding.BASE32, List.of("0000000000000", "1ASD13XH1F800", "7ZZZZZZZZZZZZ"),
                Encoding.BASE58, List.of("1", "4aaW4SzAyQK", "NQm6nKp8qFC"),
                Encoding.BASE62, List.of("00000000000", "1ptWyK4WgZU", "AzL8n0Y58m7"),
                Encoding.CHECKED, List.of("0-98", "1541815603606036480-62", "9223372036854775807-58"));
        long[] ids = {0, 1541815603606036480L, Long.MAX_VALUE};
        texts.forEach((encoding, of) -> {
            for (int i = 0; i < ids.length; i++) {
                Check.equal(encoding.encode(ids[i]), of.get(i), encoding + " of " + ids[i]);
                Check.equal(encoding.parse(of.get(i)), ids[i], encoding + " of " + of.get(i));
            }
            for (String wrong : List.of("", " 1", "-1", "+1", "01", "1.0", "9223372036854775808", "8000000000000000", "8000000000000",
                    "NQm6nKp8qFD", "AzL8n0Y58m8", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "7FFFFFFFFFFFFFFF", "7zzzzzzzzzzzz", "I", "\u0661")) {
                if (encoding == Encoding.BASE58 && List.of("AzL8n0Y58m8").contains(wrong)) continue;
                if (encoding == Encoding.BASE62 && wrong.equals("NQm6nKp8qFD")) continue; // an ID there too? its number is too great
                if (encoding == Encoding.DECIMAL && wrong.equals("8000000000000000") || encoding == Encoding.DECIMAL && wrong.equals("8000000000000")) continue;
                boolean floating = encoding == Encoding.DECIMAL && wrong.equals("1.0");
                Check.refused(floating ? "is a floating-point number" : "is not an ID in", () -> encoding.parse(wrong));
            }
        });
        for (String wrong : List.of("1-94", "2-95", "65-00", "32-99", "117465411174400050-32")) {
            Check.refused("\"" + wrong + "\" has check digits that do not fit its number; want the text exactly", () -> Encoding.CHECKED.parse(wrong));
        }
        for (String wrong : List.of("195", "1-9", "-95", "1-095", "1-95-95", "01-95", "1-95\n", "9223372036854775808-55")) {
            Check.refused("is not an ID in CHECKED", () -> Encoding.CHECKED.parse(wrong));
        }
        Check.refused("-1 is not an ID", () -> Encoding.HEX.encode(-1));
    }

    static void testLayouts() {
        Check.equal(Layout.of("twitter").decode(1541815603606036480L), parts("2022-06-28T16:07:40.105Z", 367597485448L, 11, 26, 378, 0), "twitter");
        Check.equal(Layout.of("discord").decode(175928847299117063L), parts("2016-04-30T11:18:25.796Z", 41944705796L, 1, 0, 32, 7), "discord");
        Check.equal(Layout.of("snowcast").decode(44368455009520639L), parts("2014-03-03T05:12:12Z", 5289132000L, 0, 1234, 1234, 1023), "snowcast");
        Check.equal(Layout.of("sonyflake").decode((3L << 24) + (5 << 16) + 7), parts("2014-09-01T00:00:00.030Z", 3, 0, 7, 7, 5), "sonyflake");
        Check.equal(Layout.of("41/10/12").decode(Long.MAX_VALUE), parts("2095-09-07T15:47:35.551Z", (1L << 41) - 1, 0, 1023, 1023, 4095), "greatest");
        Check.equal(Layout.of("41/10/12"), Layout.of("default"), "default");
        Check.equal(Layout.of("javascript").decode((1L << 53) - 1).sequence(), 127L, "javascript");
        Check.equal(Layout.of("39/16/8@10ms").tick(), Duration.ofMillis(10), "tick");
        Check.equal(Layout.of("30/0/33@1s").tick(), Duration.ofSeconds(1), "tick");
        Check.refused("is not an ID of the layout", () -> Layout.of("javascript").decode(1L << 53));
        Check.refused("is not an ID of the layout", () -> Layout.of("default").decode(-1));
        for (String wrong : List.of("", "nope", "41/10", "41/10/13", "0/1/2", "63/0/0", "1/2/3/4/5", "41/10/12@2s", "41/10/12@0ms", "41/10/12@1h", "-1/2/3")) {
            Check.refused("layout", () -> Layout.of(wrong));
        }
        int huge = Integer.MAX_VALUE;
        Check.refused("layout of", () -> new Layout(Instant.EPOCH, Duration.ofMillis(1), 1, huge, huge, 2, false));
        Check.refused("epoch", () -> new Layout(Instant.EPOCH.minusNanos(1), Duration.ofMillis(1), 41, 0, 10, 12, false));
    }

    static void testFirstAndLast() throws IOException {
        var vectors = (Map<?, ?>) Json.parse(Files.readString(Path.of("../conformance/vectors.json")));
        var spans = (List<?>) vectors.get("spans");
        Check.that(spans.size() > 50, "the spans are missing");
        for (Object object : spans) {
            var span = (Map<?, ?>) object;
            var layout = Layout.of((String) span.get("layout"));
            var time = Instant.parse((String) span.get("time"));
            Check.equal(Long.toString(layout.first(time)), span.get("first"), "first of " + span);
            Check.equal(Long.toString(layout.last(time)), span.get("last"), "last of " + span);
        }
        for (Object object : (List<?>) vectors.get("not_spans")) {
            var span = (Map<?, ?>) object;
            var layout = Layout.of((String) span.get("layout"));
            var time = Instant.parse((String) span.get("time"));
            Check.refused(time + " is outside the layout's lifetime; want a time from " + layout.epoch() + " on, before ", () -> layout.first(time));
            Check.refused(time + " is outside", () -> layout.last(time));
        }
        var layout = new Layout(Instant.EPOCH, Duration.ofNanos(1), 60, 0, 1, 2, false);
        Check.equal(layout.first(Instant.EPOCH.plusNanos(5)), 5L << 3, "first of a tick of 1 ns");
        for (Instant time : List.of(Instant.MIN, Instant.MAX, Instant.EPOCH.minusNanos(1))) {
            Check.refused("want a time from 1970-01-01T00:00:00Z on, before 2006-07-14T23:58:24.606846976Z", () -> layout.first(time));
        }
    }

    private static Layout.Parts parts(String time, long tick, long datacenter, long node, long nodeId, long sequence) {
        return new Layout.Parts(Instant.parse(time), tick, datacenter, node, nodeId, sequence);
    }

    static void testGather() {
        for (long[] c : new long[][] {{0, 0}, {1, 2409217963285410756L}, {1541815603606036480L, 7013790311146322595L}, {Long.MAX_VALUE, 4111756781021975487L}}) Check.equal(Layout.gather(c[1]), c[0], "gathered " + c[1]);
    }

    static void testUuids() {
        var layout = Layout.of("41/10/12");
        for (String[] c : new String[][] {{"0", "019b76da-a800-7000-8000-000000000000"}, {"1541815603606036480", "01f10d5f-2588-7000-9565-a11f6217a000"},
                {"4611686018427400249", "029b76da-a800-7001-8000-000000003039"}, {"9223372036854775807", "039b76da-a7ff-7001-bfff-ffffffffffff"}}) {
            Check.equal(layout.toUuid(Long.parseLong(c[0])).toString(), c[1], "UUID of " + c[0]);
            Check.equal(layout.fromUuid(UUID.fromString(c[1])), Long.parseLong(c[0]), "ID of " + c[1]);
        }
        for (String wrong : List.of("01f10d5f-2588-4000-9565-a11f6217a000", "01f10d5f-2588-7000-1565-a11f6217a000",
                "01f10d5f-2589-7000-9565-a11f6217a000", "01f10d5f-2588-7000-9565-a11f6257a000", "00000000-0000-0000-0000-000000000000")) {
            Check.refused("is not a UUID of an ID", () -> layout.fromUuid(UUID.fromString(wrong)));
        }
        Check.refused("its time is too late", () -> Layout.of("62/0/1").toUuid(Long.MAX_VALUE));
        Check.refused("is not an ID", () -> layout.toUuid(-1));
    }

    private TextTest() {}
}
