package io.github.firnid.client;

import io.github.firnid.client.FirnClient.Option;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Puts the client through the conformance suite: clients/conformance/README.md describes the protocol. */
final class Driver implements FirnClient.Hooks {
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final AtomicInteger attempts = new AtomicInteger(), hedged = new AtomicInteger(), fetched = new AtomicInteger(), expired = new AtomicInteger();
    private FirnClient client;
    private Duration timeout = Duration.ofSeconds(10);

    public static void main(String[] arguments) throws Exception {
        new Driver().run(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    }

    private void run(BufferedReader lines) throws Exception {
        try {
            open(object(Json.parse(lines.readLine())));
        } catch (IllegalArgumentException e) {
            write(Map.of("error", describe(e)));
            System.exit(1);
        }
        write(Map.of("ready", true));
        for (String line; (line = lines.readLine()) != null; ) {
            var request = object(Json.parse(line));
            threads.execute(() -> serve(request));
        }
        threads.shutdown();
        threads.awaitTermination(1, TimeUnit.MINUTES);
        client.close();
        System.exit(0);
    }

    private void open(Map<String, Object> opening) throws GeneralSecurityException, IOException {
        var options = new ArrayList<Option>(List.of(this));
        if (opening.get("token") instanceof String token) options.add(new FirnClient.Token(() -> token));
        if (opening.get("ca") instanceof String ca) options.add(new FirnClient.Tls(trust(Path.of(ca))));
        if (opening.get("prefetch") != null) {
            var prefetch = object(opening.get("prefetch"));
            int count = number(prefetch, "count");
            options.add(prefetch.containsKey("max_age_ms") ? new FirnClient.Prefetch(count, Duration.ofMillis(number(prefetch, "max_age_ms")))
                    : new FirnClient.Prefetch(count));
        }
        if (number(opening, "timeout_ms") > 0) timeout = Duration.ofMillis(number(opening, "timeout_ms"));
        List<?> nodes = opening.get("nodes") instanceof List<?> list ? list : List.of();
        client = new FirnClient(nodes.stream().map(String.class::cast).toList(), options.toArray(Option[]::new));
    }

    private static SSLContext trust(Path ca) throws GeneralSecurityException, IOException {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream pem = Files.newInputStream(ca)) {
            for (var c : CertificateFactory.getInstance("X.509").generateCertificates(pem)) store.setCertificateEntry("ca" + store.size(), c);
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    private void serve(Map<String, Object> request) {
        var answer = new LinkedHashMap<String, Object>();
        answer.put("n", request.get("n"));
        try {
            answer.putAll(answer(request));
        } catch (RuntimeException e) {
            answer.put("error", describe(e));
        }
        write(answer);
    }

    private Map<String, ?> answer(Map<String, Object> request) {
        var sequencer = client.sequencer(text(request, "sequencer", ""));
        String form = text(request, "form", "");
        switch (text(request, "do", "")) {
            case "next":
                return Map.of("ids", form.isEmpty() ? texts(sequencer.next(1, timeout)) : sequencer.next(1, form, timeout));
            case "fill":
                int count = number(request, "count");
                return Map.of("ids", form.isEmpty() ? texts(sequencer.next(count, timeout)) : sequencer.next(count, form, timeout));
            case "convert":
                return Map.of("ids", List.of(sequencer.convert(text(request, "id", ""), text(request, "as", ""), form, timeout)));
            case "decode":
                var p = Layout.of(text(request, "layout", "default")).decode(Encoding.DECIMAL.parse(text(request, "id", "")));
                return Map.of("parts", Map.of("unix_ms", p.time().toEpochMilli(), "tick", p.tick(), "datacenter", p.datacenter(),
                        "node", p.node(), "node_id", p.nodeId(), "sequence", p.sequence()));
            case "run":
                return run(sequencer, number(request, "callers"), number(request, "calls"));
            case "hooks":
                return Map.of("attempts", attempts.get(), "hedged", hedged.get(), "fetched", fetched.get(), "expired", expired.get());
            case "close":
                client.close();
                return Map.of("closed", true);
            default:
                throw new IllegalArgumentException("unknown request " + request);
        }
    }

    private Map<String, ?> run(Sequencer sequencer, int callers, int calls) {
        var failed = new AtomicInteger();
        var ids = new ArrayList<String>();
        var results = new ArrayList<Future<List<String>>>();
        for (int i = 0; i < callers; i++) {
            results.add(threads.submit(() -> {
                var own = new ArrayList<String>();
                for (int j = 0; j < calls; j++) {
                    try {
                        own.addAll(texts(sequencer.next(1, timeout)));
                    } catch (RuntimeException e) {
                        failed.incrementAndGet();
                        System.err.println(e);
                    }
                }
                return own;
            }));
        }
        for (var result : results) {
            try {
                ids.addAll(result.get());
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
        return Map.of("ids", ids, "failed", failed.get());
    }

    private static List<String> texts(long[] ids) { return Arrays.stream(ids).mapToObj(Encoding.DECIMAL::encode).toList(); }

    private static Map<String, ?> describe(RuntimeException e) {
        var failure = new LinkedHashMap<String, Object>();
        failure.put("kind", e instanceof FirnException.Refused ? "refused" : e instanceof FirnException.NoAnswer ? "no_answer"
                : e instanceof FirnException.Mixed ? "mixed" : e instanceof IllegalArgumentException ? "invalid" : "closed");
        if (e instanceof FirnException.Refused refused) {
            failure.put("code", refused.code);
            failure.put("status", refused.status);
            failure.put("retry_after_ms", refused.retryAfter.toMillis());
        }
        failure.put("message", e.getMessage());
        return failure;
    }

    private synchronized void write(Map<String, ?> line) {
        out.println(Json.write(line));
        out.flush();
    }

    @Override
    public void attempt(String node, String sequencer, int count, Duration duration, boolean hedge, Exception error) {
        attempts.incrementAndGet();
        if (hedge) hedged.incrementAndGet();
    }

    @Override
    public void batch(String sequencer, int added, int dropped, Exception error) {
        fetched.addAndGet(added);
        expired.addAndGet(dropped);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) { return (Map<String, Object>) value; }

    private static String text(Map<String, Object> object, String key, String missing) {
        return object.get(key) instanceof String text && !text.isEmpty() ? text : missing;
    }

    private static int number(Map<String, Object> object, String key) { return object.get(key) instanceof Long n ? n.intValue() : 0; }
}
