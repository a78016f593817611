package io.github.firnid.client;

import static io.github.firnid.client.CallTest.STILL;
import static io.github.firnid.client.CallTest.client;
import static io.github.firnid.client.FakeNode.GIVES;
import static io.github.firnid.client.FakeNode.HANGS;
import static io.github.firnid.client.FakeNode.refuses;

import io.github.firnid.client.FirnClient.Prefetch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

final class PrefetchTest {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    /** What the hooks were told. */
    private static final class Told implements FirnClient.Hooks {
        volatile int attempts, calls, fetched, expired, failed;
        volatile Duration oldest = Duration.ZERO;

        @Override
        public synchronized void attempt(String node, String sequencer, int count, Duration duration, boolean hedged, Exception error) { attempts++; }

        @Override
        public synchronized void call(String sequencer, int count, Duration duration, Duration age, Exception error) {
            calls++;
            if (age.compareTo(oldest) > 0) oldest = age;
        }

        @Override
        public synchronized void batch(String sequencer, int fetched, int expired, Exception error) {
            this.fetched += fetched;
            this.expired += expired;
            if (error != null) failed++;
        }
    }

    /** One request serves many calls, and the next one is sent when half of the IDs are left. */
    static void testBatchesAreFetchedAhead() {
        var told = new Told();
        try (var a = new FakeNode(GIVES); var firn = client(STILL, List.of(a), new Prefetch(100, MINUTE), told)) {
            var ids = new long[1000];
            for (int i = 0; i < ids.length; i++) {
                ids[i] = firn.sequencer().next();
            }
            Check.ascend(ids);
            Check.that(a.requests.get() >= 10 && a.requests.get() <= 25, a.requests + " requests for 1000 IDs");
            Check.equal(told.calls, 1000, "calls");
        }
    }

    static void testTheNextBatchIsFetchedWhenHalfAreLeft() {
        var told = new Told();
        try (var a = new FakeNode(GIVES); var firn = client(STILL, List.of(a), new Prefetch(100, MINUTE), told)) {
            firn.sequencer().next();
            Check.until(() -> told.fetched == 101, "the first fetch"); // one for the call that waited
            firn.sequencer().next(49);
            Check.equal(a.requests.get(), 1, "requests with 51 IDs left");
            a.behaviour = HANGS;
            firn.sequencer().next();
            Check.until(() -> a.requests.get() == 2, "a request with 50 left");
        }
    }

    /** A call returns an ID that is as old as it may be, and none that is older. */
    static void testTheAge() {
        for (long over : new long[] {0, 1}) {
            var clock = new AtomicLong();
            var told = new Told();
            try (var a = new FakeNode(GIVES);
                    var firn = new FirnClient(clock::get, clock::get, List.of(a.url()), new Prefetch(10, Duration.ofSeconds(1)), told)) {
                long first = firn.sequencer().next();
                Check.until(() -> told.fetched == 11, "the fetch");
                clock.addAndGet(1_000_000_000 + over);
                long second = firn.sequencer().next();
                Check.equal(second == first + 1, over == 0, "the ID is from memory");
                Check.until(() -> told.expired == (over == 0 ? 0 : 10), "dropping what is too old");
                Check.equal(told.oldest, Duration.ofSeconds(over == 0 ? 1 : 0), "the oldest");
            }
        }
    }

    /** IDs of before the machine slept, which only the wall clock has counted, are too old; a wall clock set back changes nothing. */
    static void testIDsOfBeforeTheMachineSlept() {
        for (long asleep : new long[] {900, -3_600_000, 1001}) {
            var wall = new AtomicLong();
            var told = new Told();
            try (var a = new FakeNode(GIVES);
                    var firn = new FirnClient(STILL, wall::get, List.of(a.url()), new Prefetch(10, Duration.ofSeconds(1)), told)) {
                firn.sequencer().next();
                Check.until(() -> told.fetched == 11, "the fetch");
                wall.addAndGet(asleep * 1_000_000);
                firn.sequencer().next();
                Check.until(() -> told.expired == (asleep > 1000 ? 10 : 0), "dropping what is too old");
                Check.equal(told.oldest, Duration.ofMillis(asleep == 900 ? 900 : 0), "the oldest");
            }
        }
    }

    /** The age counts from before the request: what came too late is not given. */
    static void testTheAgeIsKeptWhenNodesAreTooSlow() {
        var clock = new AtomicLong();
        FakeNode.Behaviour slow = (node, exchange, count) -> {
            clock.addAndGet(Duration.ofMillis(101).toNanos());
            GIVES.answer(node, exchange, count);
        };
        try (var a = new FakeNode(slow); var firn = new FirnClient(clock::get, clock::get, List.of(a.url()),
                new Prefetch(10, Duration.ofMillis(100)))) {
            Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(1, Duration.ofSeconds(1)));
        }
    }

    static void testCallersShareAFetch() throws Exception {
        var go = new CountDownLatch(1);
        try (var a = new FakeNode(FakeNode.givesAfter(go)); var firn = client(STILL, List.of(a), new Prefetch(1000, MINUTE))) {
            var threads = Executors.newFixedThreadPool(64);
            var calls = new ArrayList<Callable<long[]>>();
            for (int i = 0; i < 64; i++) calls.add(() -> firn.sequencer().next(7));
            new Thread(() -> {
                Check.until(() -> a.requests.get() > 0, "a request");
                go.countDown();
            }).start();
            var all = new HashSet<Long>();
            for (var result : threads.invokeAll(calls)) {
                Check.ascend(result.get());
                for (long id : result.get()) all.add(id);
            }
            threads.shutdown();
            Check.equal(all.size(), 64 * 7, "distinct IDs");
            Check.that(a.requests.get() <= 3, a.requests + " requests");
        }
    }

    /** Calls for more than are prefetched, and for texts, go to a node. */
    static void testWhatIsNotPrefetched() {
        try (var a = new FakeNode(GIVES); var firn = client(STILL, List.of(a), new Prefetch(10, MINUTE))) {
            Check.equal(firn.sequencer().next(11).length, 11, "IDs");
            Check.equal(a.calls, List.of("POST /api/v1/ids?count=11"), "calls");
            Check.equal(firn.sequencer().next(0).length, 0, "IDs");
            Check.equal(a.calls.size(), 1, "calls");
        }
    }

    /** A refusal is for the calls that wait, and the next one asks again. */
    static void testARefusal() {
        try (var a = new FakeNode(refuses(404, "unknown_sequencer")); var firn = client(STILL, List.of(a), new Prefetch(10, MINUTE))) {
            for (int i = 1; i <= 2; i++) {
                var e = Check.thrown(FirnException.Refused.class, () -> firn.sequencer().next());
                Check.equal(e.code, "unknown_sequencer", "code");
                Check.equal(a.requests.get(), i, "requests");
            }
            a.behaviour = GIVES;
            firn.sequencer().next();
        }
    }

    static void testATimeout() {
        try (var a = new FakeNode(HANGS); var firn = client(System::nanoTime, List.of(a), new Prefetch(10, MINUTE))) {
            var e = Check.thrown(FirnException.NoAnswer.class, () -> firn.sequencer().next(1, Duration.ofMillis(50)));
            Check.that(e.getMessage().endsWith("; " + a.url() + ": no answer yet"), e.getMessage());
        }
    }

    private PrefetchTest() {}
}
