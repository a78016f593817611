package io.github.firnid.client;

import static io.github.firnid.client.CallTest.STILL;
import static io.github.firnid.client.CallTest.client;
import static io.github.firnid.client.FakeNode.GIVES;
import static io.github.firnid.client.FakeNode.HANGS;
import static io.github.firnid.client.FakeNode.says;

import io.github.firnid.client.FirnClient.Prefetch;
import io.github.firnid.client.FirnClient.Token;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

final class ClientTest {
    private static final Duration SHORT = Duration.ofSeconds(5);

    static void testWhatIsSent() {
        try (var a = new FakeNode(GIVES); var firn = client(STILL, a)) {
            firn.sequencer().next();
            Check.equal(firn.sequencer("").next(3).length, 3, "IDs");
            firn.sequencer("orders 1/2").next();
            Check.equal(a.calls, List.of("POST /api/v1/id", "POST /api/v1/ids?count=3", "POST /api/v1/sequencers/orders%201%2F2/id"), "calls");
            Check.equal(Set.copyOf(a.headers), Set.of("application/octet-stream null"), "headers");
            Check.that(firn.sequencer("orders") == firn.sequencer("orders"), "one name has two sequencers");
        }
    }

    /** Each 100000 are a request, and all IDs are in order. */
    static void testVeryMany() {
        try (var a = new FakeNode(GIVES); var b = new FakeNode(GIVES); var firn = client(STILL, a, b)) {
            long[] ids = firn.sequencer().next(200_001);
            Check.equal(ids.length, 200_001, "IDs");
            Check.ascend(ids);
            Check.equal(a.requests.get() + b.requests.get(), 3, "requests");
        }
    }

    static void testTexts() {
        String one = "{\"id\": \"ord_01h455vb4pex5\", \"id_str\": \"1\"}", two = "{\"ids\":[\"1-a/b\",\"1-\\\"\\\\\"],\"ids_str\":[\"1\",\"2\"]}";
        FakeNode.Behaviour answers = (node, exchange, count) -> says(200, count == 1 ? one : two).answer(node, exchange, count);
        try (var a = new FakeNode(answers); var firn = client(STILL, a)) {
            Check.equal(firn.sequencer().next(1, "prefixed", SHORT), List.of("ord_01h455vb4pex5"), "text");
            Check.equal(firn.sequencer("orders").next(2, "sealed", SHORT), List.of("1-a/b", "1-\"\\"), "texts");
            Check.equal(a.calls, List.of("POST /api/v1/id?form=prefixed", "POST /api/v1/sequencers/orders/ids?count=2&form=sealed"), "calls");
            Check.equal(Set.copyOf(a.headers), Set.of("application/json null"), "headers");
            Check.equal(firn.sequencer().next(0, "sealed", SHORT), List.of(), "texts");
        }
        try (var a = new FakeNode(answers); var firn = client(System::nanoTime, List.of(a))) {
            var e = Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(3, "sealed", Duration.ofMillis(50)));
            Check.that(e.getMessage().contains("2 texts; want 3") || e.getMessage().contains("no answer yet"), e.getMessage());
        }
    }

    static void testConvert() {
        try (var a = new FakeNode(says(200, "{\"id_str\":\"7\",\"text\":\"1-abc\",\"time\":\"x\"}")); var firn = client(STILL, a)) {
            Check.equal(firn.sequencer("orders").convert("ord_12", "sealed", SHORT), "1-abc", "text");
            Check.equal(a.calls, List.of("GET /api/v1/sequencers/orders/ids/ord_12?form=sealed"), "calls");
            Check.equal(a.headers, List.of("application/json null"), "headers");
            firn.sequencer().convert("1234567890123456", "hex", "decimal", SHORT);
            Check.equal(a.calls.get(1), "GET /api/v1/ids/1234567890123456?form=decimal&as=hex", "call");
            for (String wrong : List.of("", "..", "a/b")) {
                Check.thrown(IllegalArgumentException.class, () -> firn.sequencer().convert(wrong, "hex", SHORT));
            }
        }
        try (var a = new FakeNode(says(200, "{\"id_str\":\"7\"}")); var firn = client(System::nanoTime, a)) {
            Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().convert("7", "hex", Duration.ofMillis(50)));
        }
    }

    static void testTokens() {
        var token = new AtomicInteger();
        try (var a = new FakeNode(GIVES); var firn = client(STILL, List.of(a), new Token(() -> "t" + token.incrementAndGet()))) {
            firn.sequencer().next();
            firn.sequencer().next();
            Check.equal(a.headers, List.of("application/octet-stream Bearer t1", "application/octet-stream Bearer t2"), "headers");
        }
        for (String wrong : new String[] {"se\ncret", "secret ", null}) {
            try (var a = new FakeNode(GIVES);
                    var firn = client(System::nanoTime, List.of(a), new Token(() -> wrong))) {
                var e = Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(1, Duration.ofMillis(50)));
                Check.that(!e.getMessage().contains("cret") && e.getMessage().contains("oken"), e.getMessage());
                Check.equal(a.requests.get(), 0, "requests");
            }
        }
    }

    static void testTls() throws Exception {
        Path store = Files.createTempDirectory("firn").resolve("keys.p12");
        var keytool = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(), "-genkeypair", "-alias", "a",
                "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=dns:localhost", "-storepass", "secret", "-keystore", store.toString());
        Check.equal(keytool.redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(ProcessBuilder.Redirect.DISCARD).start().waitFor(), 0, "status of keytool");
        var keys = KeyStore.getInstance(store.toFile(), "secret".toCharArray());
        var managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        managers.init(keys, "secret".toCharArray());
        var trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(keys);
        var tls = SSLContext.getInstance("TLS");
        tls.init(managers.getKeyManagers(), trusted.getTrustManagers(), null);
        try (var a = new FakeNode(GIVES, tls); var firn = client(STILL, List.of(a), new FirnClient.Tls(tls))) {
            firn.sequencer().next();
        }
        try (var a = new FakeNode(GIVES, tls); var firn = client(System::nanoTime, List.of(a))) {
            var e = Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(1, Duration.ofMillis(1500)));
            Check.that(e.getMessage().contains("certification path"), e.getMessage());
        }
    }

    static void testManyThreads() throws Exception {
        for (var options : List.of(new FirnClient.Option[0], new FirnClient.Option[] {new Prefetch(500, Duration.ofSeconds(5))})) {
            try (var a = new FakeNode(GIVES); var b = new FakeNode(GIVES); var firn = client(STILL, List.of(a, b), options)) {
                var threads = Executors.newFixedThreadPool(64);
                Callable<List<Long>> calls = () -> Stream.generate(() -> firn.sequencer().next()).limit(50).toList();
                var all = new HashSet<Long>();
                for (var result : threads.invokeAll(java.util.Collections.nCopies(64, calls))) all.addAll(result.get());
                threads.shutdown();
                Check.equal(all.size(), 64 * 50, "distinct IDs");
            }
        }
    }

    /** Close waits for the calls in flight, and ends everything else. */
    static void testClose() throws Exception {
        var go = new CountDownLatch(1);
        try (var a = new FakeNode(FakeNode.givesAfter(go)); var hung = new FakeNode(HANGS)) {
            var firn = client(hung, a);
            var call = Executors.newSingleThreadExecutor().submit(() -> firn.sequencer().next());
            Check.until(() -> a.requests.get() == 1 && hung.requests.get() == 1, "the requests");
            var close = new Thread(firn::close);
            close.start();
            Check.until(() -> close.getState() == Thread.State.WAITING, "close waiting");
            Check.that(!call.isDone(), "the call has ended");
            go.countDown();
            close.join();
            call.get();
            Check.thrown(IllegalStateException.class, () -> firn.sequencer().next());
            firn.close();
        }
    }

    static void testHooks() {
        var told = new java.util.concurrent.CopyOnWriteArrayList<String>();
        var hooks = new FirnClient.Hooks() {
            @Override
            public void attempt(String node, String sequencer, int count, Duration duration, boolean hedged, Exception error) {
                told.add("attempt " + sequencer + " " + count + " " + hedged + " " + (error == null ? "" : error.getMessage().replaceAll("http://\\S*", "")));
            }

            @Override
            public void call(String sequencer, int count, Duration duration, Duration age, Exception error) {
                told.add("call " + sequencer + " " + count + " " + !age.isZero() + " " + (error == null ? "" : error.getClass().getSimpleName()));
            }
        };
        try (var a = new FakeNode(GIVES); var firn = client(System::nanoTime, List.of(a), hooks)) {
            firn.sequencer("orders").next(3);
            a.behaviour = FakeNode.refuses(403, "forbidden");
            Check.thrown(FirnException.Refused.class, () -> firn.sequencer().next());
        }
        Check.until(() -> told.size() == 4, "the hooks"); // of requests are called by another thread
        Check.equal(told.stream().sorted().toList(), List.of("attempt  1 false  answers 403: forbidden: so <it> \"is\"",
                "attempt orders 3 false ", "call  1 false Refused", "call orders 3 true "), "told");
    }

    static void testWrongParameters() {
        Check.refused("no nodes", () -> new FirnClient(List.of()));
        for (String wrong : List.of("a:8080", "ftp://a", "http://:8080", "http://a/ids", "http://a?x=1", "http://a#b", "http://a:b", "")) {
            Check.refused("node " + wrong + "; want", () -> new FirnClient(List.of("http://x", wrong)));
        }
        Check.refused("node ...@a; want", () -> new FirnClient(List.of("http://me:secret@a")));
        Check.refused("node http://a; want", () -> new FirnClient(List.of("http://a", "HTTP://A/")));
        Check.equal(new Prefetch(7).maxAge(), Duration.ofSeconds(2), "age");
        Check.refused("prefetch of 0 IDs", () -> new Prefetch(0, Duration.ofSeconds(1)));
        Check.refused("prefetch of 100001 IDs", () -> new Prefetch(100_001, Duration.ofSeconds(1)));
        Check.refused("age of PT0S", () -> new Prefetch(1, Duration.ZERO));
        try (var firn = new FirnClient(List.of("http://a", "https://[::1]:8443", "http://b:1"))) {
            Check.refused("-1 IDs", () -> firn.sequencer().next(-1));
            Check.refused("timeout of PT-1S", () -> firn.sequencer().next(1, Duration.ofSeconds(-1)));
            Check.refused("timeout of PT0S", () -> firn.sequencer().next(1, Duration.ZERO));
        }
    }

    private ClientTest() {}
}
