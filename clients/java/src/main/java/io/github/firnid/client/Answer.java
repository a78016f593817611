package io.github.firnid.client;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletionException;
import java.util.regex.Pattern;

/** IDs, or their texts if a form was asked for, and when a node was asked for the oldest; or why it gives none. */
record Answer(long asked, long[] ids, List<String> texts, Exception error) {
    private static final Pattern STRING = Pattern.compile("\"((?:[^\"\\\\]|\\\\.)*+)\"\\s*(:?)", Pattern.DOTALL);

    /** Reads the answer to a query. */
    static Answer read(long asked, String node, Clusters clusters, Sequencer.Query query, HttpResponse<byte[]> response, Throwable failure) {
        try {
            Throwable f = failure instanceof CompletionException ? failure.getCause() : failure;
            if (f != null) throw new IOException(f.getMessage() != null ? f.getMessage() : f.getClass().getSimpleName(), f);
            clusters.take(node, response.headers().firstValue("Firn-Cluster").orElse(""));
            if (response.statusCode() != 200) throw refusal(node, response);
            if (query.key().isEmpty()) return new Answer(asked, unpack(response.body(), query.count()), List.of(), null);
            var texts = strings(response.body()).getOrDefault(query.key(), List.of());
            if (texts.size() != query.count()) throw new IOException("wrong answer: " + texts.size() + " texts; want " + query.count());
            return new Answer(asked, new long[0], texts, null);
        } catch (IOException e) {
            return new Answer(asked, null, null, new IOException(node + ": " + e.getMessage(), e.getCause()));
        } catch (FirnException e) {
            return new Answer(asked, null, null, e);
        }
    }

    private static FirnException.Refused refusal(String node, HttpResponse<byte[]> response) {
        var answer = strings(response.body()); // none if it is not from a firn node
        String code = answer.getOrDefault("code", List.of("")).get(0), message = answer.getOrDefault("message", List.of("")).get(0);
        var parts = List.of(node + " answers " + response.statusCode(), code, message).stream().filter(part -> !part.isEmpty());
        long seconds = response.headers().firstValue("Retry-After").filter(s -> s.matches("[0-9]{1,9}")).map(Long::valueOf).orElse(0L);
        return new FirnException.Refused(String.join(": ", parts.toList()), response.statusCode(), code, Duration.ofSeconds(seconds));
    }

    /** Reads IDs of 8 bytes each, big-endian. */
    private static long[] unpack(byte[] body, int count) throws IOException {
        if (body.length != count * Long.BYTES) throw new IOException("wrong answer: " + body.length + " bytes for " + count + " IDs");
        var ids = new long[count];
        ByteBuffer.wrap(body).asLongBuffer().get(ids);
        long[] sorted = Arrays.stream(ids).sorted().toArray(); // they ascend, unless the sequencer scatters them
        for (int i = 0; i < count; i++) {
            if (sorted[i] <= (i == 0 ? 0 : sorted[i - 1])) throw new IOException("wrong answer: want IDs above zero, each once");
        }
        return ids;
    }

    /** Returns the strings of a JSON text by the key before them, wherever they are. It never fails. */
    private static Map<String, List<String>> strings(byte[] json) {
        var strings = new HashMap<String, List<String>>();
        String key = "";
        for (var m = STRING.matcher(new String(json, StandardCharsets.UTF_8)); m.find(); ) {
            String text = m.group(1).replaceAll("\\\\(.)", "$1"); // nodes escape nothing but quotes and backslashes
            if (m.group(2).isEmpty()) strings.computeIfAbsent(key, k -> new ArrayList<>()).add(text);
            else key = text;
        }
        return strings;
    }
}
