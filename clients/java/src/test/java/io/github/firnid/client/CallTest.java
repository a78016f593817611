package io.github.firnid.client;

import static io.github.firnid.client.FakeNode.GIVES;
import static io.github.firnid.client.FakeNode.HANGS;
import static io.github.firnid.client.FakeNode.RESETS;
import static io.github.firnid.client.FakeNode.pack;
import static io.github.firnid.client.FakeNode.refuses;
import static io.github.firnid.client.FakeNode.says;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** Which nodes a call asks, and how it ends. */
final class CallTest {
    private static final long MS = 1_000_000;

    private record Case(String name, FakeNode.Behaviour bad, boolean retried) {}

    /** Which failures of a node are tried to put right with another one, and which are for the caller. */
    static void testWhatIsRetried() {
        var cases = List.of(
                new Case("reset", RESETS, true),
                new Case("no answer", HANGS, true),
                new Case("301", says(301, "", "Location", "/"), true),
                new Case("400", refuses(400, "bad_request"), false),
                new Case("401", refuses(401, "unauthenticated"), false),
                new Case("401 of a proxy", says(401, "<html>"), false),
                new Case("403", refuses(403, "forbidden"), false),
                new Case("404", refuses(404, "unknown_sequencer"), false),
                new Case("404 of what is no firn node", says(404, "<html>"), true),
                new Case("408", says(408, ""), true),
                new Case("409", refuses(409, "exists"), false),
                new Case("409 of a counter at its end", refuses(409, "exhausted"), false),
                new Case("409 of a counter after a loss", refuses(409, "lost"), false),
                new Case("413", refuses(413, "too_large"), false),
                new Case("429", refuses(429, "rate_limited", "Retry-After", "1"), false),
                new Case("500", refuses(500, "internal"), true),
                new Case("502 of a proxy", says(502, "<html>"), true),
                new Case("503 not_ready", refuses(503, "not_ready", "Retry-After", "1"), true),
                new Case("503 overloaded", refuses(503, "overloaded"), true),
                new Case("503 lifetime", refuses(503, "lifetime"), false),
                new Case("503 with another code", refuses(503, "draining"), true),
                new Case("503 without a code", says(503, ""), true),
                new Case("JSON", says(200, "{\"id\":1}"), true),
                new Case("no ID", says(200, ""), true),
                new Case("half an ID", says(200, new byte[4]), true),
                new Case("two IDs", says(200, pack(1, 2)), true),
                new Case("zero", says(200, pack(0)), true),
                new Case("negative", says(200, pack(-1)), true),
                new Case("too long", says(200, new byte[1 << 20]), true),
                new Case("204", says(204, ""), true));
        for (Case c : cases) {
            LongSupplier clock = c.bad == HANGS ? System::nanoTime : STILL;
            try (var good = new FakeNode(GIVES); var bad = new FakeNode(c.bad); var firn = client(clock, good, bad)) {
                if (c.retried) { // the second one is the first to be asked
                    firn.sequencer().next();
                } else {
                    var e = Check.thrown(FirnException.Refused.class, () -> firn.sequencer().next());
                    Check.that(e.getMessage().startsWith(bad.url()), c.name + ": " + e);
                    Check.equal(good.requests.get(), 0, c.name + ": requests to another node");
                }
                Check.that(bad.requests.get() == 1 || c.bad == HANGS, c.name + ": requests to the bad node");
            }
        }
    }

    static void testAnswersOfManyIds() {
        for (var wrong : List.of(pack(5, 5), pack(0, 5), pack(5, -6), pack(5), pack(1, 2, 3))) {
            try (var good = new FakeNode(GIVES); var bad = new FakeNode(says(200, wrong)); var firn = client(STILL, good, bad)) {
                Check.ascend(firn.sequencer().next(2));
                Check.equal(good.requests.get(), 1, "requests to the good node");
            }
        }
    }

    /** A node is told the greatest ID that another one gave. */
    static void testAnotherNodeLearnsTheGreatestId() {
        try (var a = new FakeNode(GIVES); var b = new FakeNode(GIVES); var firn = client(STILL, a, b)) {
            var down = refuses(503, "not_ready");
            FakeNode before = null;
            long last = 0;
            for (var node : List.of(a, a, b, b, a)) {
                boolean changed = before != null && before != node;
                before = node;
                a.behaviour = b.behaviour = down;
                node.behaviour = GIVES;
                long id = firn.sequencer().next();
                Check.equal(node.after.get(node.after.size() - 1), changed ? Long.toString(last) : "", "the ID to exceed");
                Check.that(id > last, id + " after " + last);
                last = id;
            }
            a.behaviour = down;
            b.behaviour = says(200, pack(7), "Content-Type", "application/octet-stream");
            firn.sequencer().next();
            firn.sequencer().next();
            Check.equal(b.after.get(b.after.size() - 1), Long.toString(last), "a smaller ID does not count");
            firn.sequencer("orders").next();
            Check.equal(b.after.get(b.after.size() - 1), "", "the ID of another sequencer");
        }
    }

    /** Those that a sequencer scatters do not ascend. */
    static void testScatteredIds() {
        try (var a = new FakeNode(says(200, pack(7, 9, 8))); var firn = client(STILL, a)) {
            Check.equal(Arrays.toString(firn.sequencer().next(3)), "[7, 9, 8]", "IDs");
        }
    }

    static void testTheErrorSaysWhatTheNodeSays() {
        try (var a = new FakeNode(refuses(429, "rate_limited", "Retry-After", "7")); var firn = client(a)) {
            var e = Check.thrown(FirnException.Refused.class, () -> firn.sequencer().next());
            Check.equal(e.getMessage(), a.url() + " answers 429: rate_limited: so <it> \"is\"", "message");
            Check.equal(List.of(e.status, e.code, e.retryAfter), List.of(429, "rate_limited", Duration.ofSeconds(7)), "fields");
            Check.that(e.getStackTrace()[0].getClassName().contains("firnid"), "the stack is of another thread");
            boolean here = List.of(e.getStackTrace()).stream().anyMatch(f -> f.getMethodName().equals("testTheErrorSaysWhatTheNodeSays"));
            Check.that(here, "the stack does not show who called");
        }
    }

    /** When the time is over the exception says of each node what was wrong. */
    static void testNoNodeAnswers() throws IOException {
        String gone;
        try (var port = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            gone = "http://127.0.0.1:" + port.getLocalPort();
        }
        try (var busy = new FakeNode(refuses(503, "not_ready", "Retry-After", "1")); var hung = new FakeNode(HANGS);
                var firn = new FirnClient(List.of(gone, busy.url(), hung.url()))) {
            var e = Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(1, Duration.ofMillis(700)));
            for (String want : List.of("no node gave an ID in time: none within 7", gone + ": ", busy.url() + " answers 503: not_ready: ", hung.url() + ": ")) {
                Check.that(e.getMessage().contains(want), e.getMessage() + "; want " + want);
            }
            Check.that(e.getMessage().contains(gone + ": ConnectException"), e.getMessage());
            Check.equal(e.getSuppressed().length, 3, "errors of nodes");
            Check.that(hung.requests.get() <= 2, hung.requests + " requests to the node that hangs");
            Check.that(busy.requests.get() >= 2 && busy.requests.get() <= 12, busy.requests + " requests to the node that is not ready");
        }
    }

    static void testTheOnlyNodeIsRestarted() {
        try (var a = new FakeNode(RESETS); var firn = client(a)) {
            a.behaviour = (node, exchange, count) -> (node.requests.get() < 4 ? RESETS : GIVES).answer(node, exchange, count);
            firn.sequencer().next();
            Check.equal(a.requests.get(), 4, "requests");
        }
    }

    /** A node that was stopped costs the calls after the first few nothing. */
    static void testAStoppedNodeIsAvoided() {
        var hedged = new AtomicLong();
        var hooks = new FirnClient.Hooks() {
            @Override
            public void attempt(String node, String sequencer, int count, Duration duration, boolean hedge, Exception error) {
                if (hedge) hedged.incrementAndGet();
            }
        };
        try (var a = new FakeNode(GIVES); var b = new FakeNode(GIVES); var firn = client(System::nanoTime, List.of(a, b), hooks)) {
            for (int i = 0; i < 100; i++) firn.sequencer().next();
            Check.that(b.requests.get() >= 40, b.requests + " of 100 requests");
            int before = b.requests.get();
            b.behaviour = HANGS;
            for (int i = 0; i < 500; i++) firn.sequencer().next();
            Check.that(b.requests.get() > before && b.requests.get() < before + 50, b.requests.get() - before + " requests to the stopped node");
            Check.that(hedged.get() > 0, "no request was hedged");
        }
    }

    /** The client avoids a node that fails for 50 to 100 ms, then twice as long, and takes it back when it gives IDs. */
    static void testBackoff() {
        var clock = new AtomicLong(-5); // a clock may show anything
        try (var a = new FakeNode(GIVES); var b = new FakeNode(refuses(500, "internal")); var firn = client(clock::get, a, b)) {
            for (long least : new long[] {0, 50, 100, 200, 400, 800, 1600, 2500, 2500}) {
                int before = b.requests.get();
                clock.addAndGet(Math.max(0, least - 1) * MS);
                for (int i = 0; i < 10 && least > 0; i++) firn.sequencer().next();
                Check.equal(b.requests.get(), before, "requests within " + least + " ms");
                clock.addAndGet((least + 2) * MS);
                for (int i = 0; i < 10; i++) firn.sequencer().next();
                Check.equal(b.requests.get(), before + 1, "requests after " + 2 * least + " ms");
            }
            b.behaviour = GIVES;
            clock.addAndGet(5000 * MS);
            for (int i = 0; i < 10; i++) firn.sequencer().next();
            int before = b.requests.get();
            for (int i = 0; i < 10; i++) firn.sequencer().next();
            Check.equal(b.requests.get(), before + 5, "requests of 10 since it is back");
        }
    }

    /** One call is enough to see whether a node works again. */
    static void testOneProbeAtATime() throws Exception {
        var clock = new AtomicLong();
        var go = new CountDownLatch(1);
        try (var a = new FakeNode(GIVES); var b = new FakeNode(RESETS); var firn = client(clock::get, a, b);
                AutoCloseable release = go::countDown) { // else close would wait for the calls for ever
            firn.sequencer().next();
            Check.equal(List.of(a.requests.get(), b.requests.get()), List.of(1, 1), "requests");
            clock.addAndGet(100 * MS);
            a.behaviour = b.behaviour = FakeNode.givesAfter(go);
            for (int i = 3; i <= 7; i++) {
                int requests = i;
                new Thread(() -> firn.sequencer().next()).start();
                Check.until(() -> a.requests.get() + b.requests.get() == requests, "a request");
            }
            Check.equal(b.requests.get(), 2, "requests to the node that failed");
        }
    }

    static void testRetryAfter() {
        var clock = new AtomicLong();
        try (var a = new FakeNode(GIVES); var b = new FakeNode(refuses(503, "not_ready", "Retry-After", "3")); var firn = client(clock::get, a, b)) {
            for (int i = 0; i < 10; i++) {
                firn.sequencer().next();
                clock.addAndGet(299 * MS);
            }
            Check.equal(b.requests.get(), 1, "requests within 3 s");
            clock.addAndGet(10 * MS);
            firn.sequencer().next();
            firn.sequencer().next();
            Check.equal(b.requests.get(), 2, "requests after 3 s");
        }
    }

    /** What is wrong with one sequencer on a node says nothing of another. */
    static void testEverySequencerHasItsOwnNodes() {
        var clock = new AtomicLong();
        try (var a = new FakeNode(GIVES); var b = new FakeNode((node, exchange, count) -> {
            boolean orders = exchange.getRequestURI().getPath().contains("orders");
            (orders ? refuses(503, "waiting") : GIVES).answer(node, exchange, count);
        }); var firn = client(clock::get, a, b)) {
            firn.sequencer("orders").next();
            int before = b.requests.get();
            for (int i = 0; i < 10; i++) firn.sequencer().next();
            Check.equal(b.requests.get(), before + 5, "requests of 10");
        }
    }

    /** A limit that only the second request of the call exceeds does not end it. */
    static void testALimitOfTheSecondRequest() {
        var limited = new FakeNode(refuses(429, "rate_limited"));
        var slow = new FakeNode((node, exchange, count) -> {
            Check.until(() -> limited.requests.get() > 0, "a second request");
            GIVES.answer(node, exchange, count);
        });
        try (limited; slow; var firn = client(limited, slow)) {
            firn.sequencer().next();
        }
    }

    static void testPatience() {
        record Case(long a, long b, long from, long to) {}
        for (var c : List.of(
                new Case(20 * MS, 20 * MS, 20 * MS, 21 * MS), new Case(20 * MS, 60 * MS, 100 * MS, 150 * MS),
                new Case(MS, MS / 1000, 10 * MS, 10 * MS), new Case(1000 * MS, 2000 * MS, 1000 * MS, 1000 * MS))) {
            var pace = new Sequencer.Pace();
            for (int i = 0; i < 50; i++) {
                pace.add(c.a);
                pace.add(c.b);
            }
            long patience = pace.patience(1);
            Check.that(patience >= c.from && patience <= c.to, c + ": " + patience);
        }
        Check.equal(new Sequencer.Pace().patience(100_000), 600 * MS, "patience while nothing is known");
    }

    static void testAnInterrupt() throws Exception {
        try (var a = new FakeNode(HANGS); var firn = client(a)) {
            var problems = new ArrayList<String>();
            var thread = new Thread(() -> {
                var e = Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(1, Duration.ofHours(1)));
                if (!Thread.currentThread().isInterrupted() || !e.getMessage().contains("interrupted")) problems.add(e.toString());
            });
            thread.start();
            Check.until(() -> a.requests.get() == 1, "the request");
            thread.interrupt();
            thread.join(TimeUnit.SECONDS.toMillis(10));
            Check.that(!thread.isAlive() && problems.isEmpty(), "interrupted: " + problems);
        }
    }

    /** Time stands still for this one, so it sends no request because another one takes long. */
    static final LongSupplier STILL = () -> 0;

    static FirnClient client(FakeNode... nodes) { return client(System::nanoTime, List.of(nodes)); }

    static FirnClient client(LongSupplier clock, FakeNode... nodes) { return client(clock, List.of(nodes)); }

    static FirnClient client(LongSupplier clock, List<FakeNode> nodes, FirnClient.Option... options) {
        return new FirnClient(clock, clock, nodes.stream().map(FakeNode::url).toList(), options);
    }
}
