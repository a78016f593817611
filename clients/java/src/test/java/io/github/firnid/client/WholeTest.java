package io.github.firnid.client;

import static io.github.firnid.client.CallTest.STILL;
import static io.github.firnid.client.CallTest.client;
import static io.github.firnid.client.FakeNode.says;

import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** What is not whole is refused in the words of all clients, and texts that other programs write differently are read. */
final class WholeTest {
    private static final Duration SHORT = Duration.ofSeconds(5);

    private static List<?> cases(String key) throws IOException {
        return (List<?>) ((Map<?, ?>) Json.parse(Files.readString(Path.of("../conformance/whole.json")))).get(key);
    }

    private static String sentence() throws IOException {
        return (String) ((Map<?, ?>) Json.parse(Files.readString(Path.of("../conformance/whole.json")))).get("says");
    }

    static void testNotWhole() throws IOException {
        Check.that(cases("not_whole").size() > 5, "the cases are missing");
        for (Object text : cases("not_whole")) Check.refused(sentence(), () -> Encoding.DECIMAL.parse((String) text));
    }

    static void testUuids() throws IOException {
        var layout = Layout.of("default");
        for (Object object : cases("uuids")) {
            var uuid = (Map<?, ?>) object;
            Check.equal(layout.fromUuid((String) uuid.get("text")), Long.valueOf((String) uuid.get("id")), "ID of " + uuid.get("text"));
        }
        for (Object text : cases("not_uuids")) Check.refused("is not a UUID; want one such as", () -> layout.fromUuid((String) text));
    }

    static void testTaggedUuids() throws IOException {
        var layout = Layout.of("default");
        var tagged = (List<?>) ((Map<?, ?>) Json.parse(Files.readString(Path.of("../conformance/vectors.json")))).get("tagged");
        Check.that(tagged.size() > 10, "the cases are missing");
        Check.refused("the sequencer is null; want its name", () -> layout.toUuid(1, null));
        for (Object object : tagged) {
            var one = (Map<?, ?>) object;
            String name = (String) one.get("sequencer");
            long id = Long.parseLong((String) one.get("id"));
            var uuid = UUID.fromString((String) one.get("uuid"));
            Check.equal(layout.toUuid(id, name), uuid, "UUID of " + name);
            Check.equal(layout.fromUuid(uuid), id, "ID of " + uuid);
            Check.equal(layout.fromUuid(uuid, name), id, "ID of " + uuid + " of " + name);
            Check.refused("and the sequencer another", () -> layout.fromUuid(uuid, "another"));
        }
    }

    static void testWhatIsConverted() throws IOException {
        try (var a = new FakeNode(says(200, "{\"id_str\":\"7\",\"text\":\"1-abc\"}")); var firn = client(STILL, a)) {
            for (Object text : cases("converted")) Check.equal(firn.sequencer().convert((String) text, "hex", SHORT), "1-abc", "text");
            var sent = a.calls.stream().map(call -> URLDecoder.decode(call, StandardCharsets.UTF_8)).toList();
            Check.equal(sent, cases("converted").stream().map(text -> "GET /api/v1/ids/" + text + "?form=hex").toList(), "calls");
            for (Object text : cases("not_converted")) {
                Check.thrown(IllegalArgumentException.class, () -> firn.sequencer().convert((String) text, "hex", SHORT));
            }
            for (Object text : cases("not_whole")) {
                if (((String) text).contains(".")) Check.refused(sentence(), () -> firn.sequencer().convert((String) text, "hex", SHORT));
            }
            Check.equal(a.calls.size(), sent.size(), "calls");
        }
    }

    private WholeTest() {}
}
