package io.github.firnid.client;

import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

/**
 * Takes IDs of one sequencer. Many threads can use it. {@link FirnClient#sequencer} returns one.
 *
 * <p>A call lasts for up to 10 s, or its own timeout above zero. {@link FirnException.Refused} is thrown at once when the caller
 * must put something right, {@link FirnException.Mixed} when nodes of several clusters answer, {@link FirnException.NoAnswer} when
 * the time is over or the thread is interrupted, as it stays.
 */
public final class Sequencer {
    static final int MOST = 100_000; // IDs that a node gives at once
    private static final long MS = 1_000_000; // in nanoseconds, as all times
    private final FirnClient client;
    private final String name; // empty: the default one
    private final String path; // of its calls
    private final Stock stock;
    private final Pace[] paces = Stream.generate(Pace::new).limit(18).toArray(Pace[]::new); // of 1 ID, 2, up to 4, up to 8, ...
    private final List<Route> routes; // one for each node; this object guards them and what follows
    private int turn; // which route was taken last
    private long seen; // the greatest ID that a node gave
    private Route seenAt; // that node; null: none

    Sequencer(FirnClient client, String name) {
        this.client = client;
        this.name = name;
        path = "/api/v1" + (name.isEmpty() ? "" : "/sequencers/" + encode(name));
        stock = new Stock();
        routes = client.nodes.stream().map(Route::new).toList();
    }

    /** Returns an ID. */
    public long next() { return next(1)[0]; }

    /** Returns 0 or more IDs, in ascending order unless the sequencer scatters them. */
    public long[] next(int count) { return next(count, Duration.ofSeconds(10)); }

    /** Returns 0 or more IDs, as {@link #next(int)} does. The timeout is for each 100000 of them, one after the other. */
    public long[] next(int count, Duration timeout) {
        if (count <= MOST) return call(ids(count), timeout).ids();
        return LongStream.concat(Arrays.stream(next(MOST, timeout)), Arrays.stream(next(count - MOST, timeout))).sorted().toArray();
    }

    /** Returns 0 to 100000 IDs as a node writes them in a form, such as "prefixed" or "sealed". */
    public List<String> next(int count, String form, Duration timeout) {
        String path = ids(count).path + (count == 1 ? "?" : "&") + "form=" + encode(form);
        return call(new Query("POST", path, count == 1 ? "id" : "ids", count), timeout).texts();
    }

    /** Has a node write an ID, of which it reads every form, in another form: "sealed" seals it, "decimal" opens it. */
    public String convert(String id, String form, Duration timeout) { return convert(id, "", form, timeout); }

    /** Does the same for a text in the form {@code as}. Without that a node refuses a text that is an ID in several forms. */
    public String convert(String id, String as, String form, Duration timeout) {
        if (!id.matches("\ufeff?[\\w{}:-]+")) {
            if (id.contains(".")) Encoding.DECIMAL.parse(id); // says what is wrong with a floating-point number
            throw new IllegalArgumentException(String.format("\"%.40s\" is not an ID in any form", id));
        }
        return call(new Query("GET", path + "/ids/" + encode(id) + "?form=" + encode(form) + (as.isEmpty() ? "" : "&as=" + encode(as)), "text", 1), timeout).texts().get(0);
    }

    /** A request for packed IDs, or for texts under a key. */
    record Query(String method, String path, String key, int count) {}
    private Query ids(int count) { return new Query("POST", path + (count == 1 ? "/id" : "/ids?count=" + count), "", count); }
    private static String encode(String part) { return URLEncoder.encode(part, StandardCharsets.UTF_8).replace("+", "%20"); }
    private long now() { return client.clock.getAsLong(); }

    private Answer call(Query query, Duration timeout) {
        FirnClient.require(query.count >= 0, "%d IDs; want 0 or more", query.count);
        FirnClient.require(!timeout.isNegative() && !timeout.isZero(), "timeout of %s; want more than zero", timeout);
        long began = now(), deadline = began + timeout.toNanos();
        var answer = new Answer(began, new long[0], List.of(), null); // for a count of 0
        RuntimeException error = null;
        if (client.closed) throw new IllegalStateException("the client is closed");
        client.calls.readLock().lock();
        try {
            boolean prefetched = client.prefetch != null && query.key.isEmpty() && query.count <= client.prefetch.count();
            if (query.count > 0) answer = prefetched ? stock.take(query.count, deadline) : new Call(query, deadline).run();
            return answer;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw error = new FirnException.NoAnswer("the thread was interrupted", List.of());
        } catch (RuntimeException e) {
            throw error = e;
        } finally {
            client.calls.readLock().unlock();
            var age = Duration.ofNanos(error == null ? now() - answer.asked() : 0);
            client.hooks.call(name, query.count, Duration.ofNanos(now() - began), age, error);
        }
    }

    /**
     * Takes the best route not tried yet: one with the fewest requests of this call, then one that is not avoided, then one with
     * the fewest requests in flight, in turn. Of avoided ones it takes the one whose pause ends first.
     */
    private synchronized Route pick(Call call) {
        long now = now();
        Comparator<Route> order = Comparator.comparingLong(call::out).thenComparing(r -> now - r.until < 0)
                .thenComparingLong(r -> now - r.until < 0 ? r.until - now : r.inFlight);
        var inTurn = IntStream.rangeClosed(1, routes.size()).mapToObj(i -> routes.get((turn + i) % routes.size()));
        Route best = inTurn.filter(r -> !call.tried.contains(r)).min(order).orElse(null);
        if (best == null) return null;
        turn = routes.indexOf(best);
        best.inFlight++;
        if (best.failures > 0 && now - best.until >= 0) best.pause(); // one call is enough to see whether it works again
        return best;
    }

    /** Updates a route because of a request that has ended, or has no answer yet. */
    private synchronized void judge(Route r, Exception e, boolean ended) {
        if (ended) r.inFlight--;
        if (e == null) {
            r.failures = 0;
            r.until = now();
        } else if (!FirnException.isFinal(e)) {
            if (r.failures == 0 || now() - r.until >= 0) r.pause();
            r.until = Math.max(r.until, now() + Math.min(FirnException.retryAfter(e), 5000 * MS));
        }
        r.error = e;
    }

    /** Returns the ID that those of a node are to exceed: the greatest, if another node gave that. */
    private synchronized long follows(Route r) { return r == seenAt ? 0 : seen; }

    private synchronized void saw(Route r, long[] ids) {
        for (long id : ids) {
            if (id <= seen) continue;
            seen = id;
            seenAt = r;
        }
    }

    private synchronized FirnException noAnswer(long began) {
        Stream<Exception> errors = routes.stream().map(r -> r.error != null ? r.error : new IOException(r.node + ": no answer yet"));
        return new FirnException.NoAnswer("none within " + (now() - began) / MS + " ms", errors.toList());
    }

    /** A node as one sequencer sees it: a node may give IDs of one sequencer and not of another. */
    private final class Route {
        final String node;
        int inFlight;
        int failures; // in a row; one that begins within the pause after another is not counted
        long until = now(); // the client avoids the node until then
        Exception error; // of the last request; null: it brought IDs
        Route(String node) { this.node = node; }

        /** Pauses for 100 ms, doubles that with each failure in a row up to 5 s, and takes off up to half of it by chance. */
        void pause() {
            long pause = Math.min(100 * MS << Math.min(failures++, 10), 5000 * MS);
            until = now() + pause - ThreadLocalRandom.current().nextLong(pause / 2 + 1);
        }
    }

    /** How long recent answers took: their moving average and deviation, as TCP computes them (RFC 6298). */
    static final class Pace {
        private long mean, deviation;
        synchronized void add(long took) {
            deviation = mean == 0 ? took / 2 : deviation + (Math.abs(took - mean) - deviation) / 4;
            mean = mean == 0 ? took : mean + (took - mean) / 8;
        }

        /** Returns the time within which nearly every answer with so many IDs comes. */
        synchronized long patience(int count) {
            return mean == 0 ? 100 * MS + count * 5_000L : Math.min(Math.max(mean + 4 * deviation, 10 * MS), 1000 * MS);
        }
    }

    /** Asks one node after the other for IDs, and several at once when they are slow. One thread owns it. */
    private final class Call {
        record Request(Route route, long asked, CompletableFuture<?> sent) {}
        final Query query;
        final long deadline;
        final List<Request> live = new ArrayList<>();
        final Set<Route> tried = new HashSet<>(); // in this round
        final BlockingQueue<Map.Entry<Request, Answer>> ended = new LinkedBlockingQueue<>();
        volatile long bar = Long.MAX_VALUE; // once a request has won, one that takes longer is slow

        Call(Query query, long deadline) {
            this.query = query;
            this.deadline = deadline;
        }

        Answer run() throws InterruptedException {
            Pace pace = paces[Integer.SIZE - Integer.numberOfLeadingZeros(query.count - 1)];
            long began = now(), patience = pace.patience(query.count), wait = patience, due = after(wait);
            next();
            while (true) {
                var next = ended.poll(Math.min(due, deadline) - now(), TimeUnit.NANOSECONDS);
                if (next != null) {
                    live.remove(next.getKey());
                    Answer answer = next.getValue();
                    if (answer.error() == null) {
                        pace.add(now() - answer.asked());
                        end(Math.max(patience, 2 * (now() - answer.asked())));
                        return answer;
                    }
                    if (!FirnException.isFinal(answer.error())) {
                        next();
                    } else if (!(answer.error() instanceof FirnException.Refused e && e.status == 429) || live.isEmpty()) {
                        throw (RuntimeException) answer.error().fillInStackTrace(); // with the stack of this thread
                    } // else perhaps because the call has sent several requests
                } else if (now() - deadline >= 0) {
                    end(patience);
                    throw noAnswer(began);
                } else if (now() - due >= 0) {
                    if (!next()) {
                        tried.removeIf(route -> out(route) < 2); // a new round: a second request helps behind a balancer
                        next();
                    }
                    wait = Math.min(2 * wait, 1000 * MS);
                    due = after(wait);
                }
            }
        }

        /** Returns when a wait ends: after at most half of the time left, so that some is left for another node. */
        long after(long wait) { return now() + Math.min(wait, Math.max((deadline - now()) / 2, 10 * MS)); }

        long out(Route route) { return live.stream().filter(r -> r.route == route).count(); }

        /** Asks another node, and returns whether there is one in this round. The request may outlive the call. */
        boolean next() {
            Route route = pick(this);
            if (route == null) return false;
            boolean hedged = !live.isEmpty();
            long asked = now();
            var sent = client.send(route.node, query, query.method.equals("POST") ? follows(route) : 0);
            var request = new Request(route, asked, sent);
            tried.add(route);
            live.add(request);
            sent.whenComplete((response, failure) -> {
                var answer = Answer.read(asked, route.node, client.clusters, query, response, failure);
                long took = now() - asked;
                if (answer.error() == null) saw(route, answer.ids());
                judge(route, answer.error() == null && took > bar ? slow(route, took) : answer.error(), true);
                ended.add(Map.entry(request, answer));
                client.hooks.attempt(route.node, name, query.count, Duration.ofNanos(took), hedged, answer.error());
            });
            return true;
        }

        /** Ends the other requests soon, and makes the client avoid the nodes whose answers take longer than that. */
        void end(long longer) {
            bar = longer;
            for (Request r : live) {
                r.sent.orTimeout(1, TimeUnit.SECONDS); // an answer until then shows that the node works, and keeps the connection
                if (now() - r.asked > longer) judge(r.route, slow(r.route, now() - r.asked), false);
            }
        }

        Exception slow(Route r, long took) { return new IOException(r.node + ": slower than other nodes: " + took / MS + " ms"); }
    }

    /** The IDs in memory. */
    private final class Stock {
        /** IDs, when they were asked for, and how far the wall clock was ahead of the client's then. */
        record Held(long[] ids, long asked, long ahead) {}
        final Deque<Held> held = new ArrayDeque<>(); // the oldest first; this object guards it and what follows
        int used; // IDs of the oldest
        int wanted; // by calls that wait
        int expired; // IDs dropped since the hook was called
        boolean fetching;
        long restUntil = now(); // until then, after a failure, it fetches only for calls that wait
        FirnException refusal; // of the last fetch, for a reason that the caller must fix

        /** Takes IDs, as many as are prefetched at most. */
        synchronized Answer take(int count, long deadline) throws InterruptedException {
            long began = now(), maxAge = client.prefetch.maxAge().toNanos();
            var before = refusal;
            wanted += count;
            try {
                while (true) {
                    long now = now();
                    for (; !held.isEmpty() && (now - asked() > maxAge || used == held.peek().ids().length); used = 0) {
                        expired += held.poll().ids().length - used;
                    }
                    if (count <= left()) return pop(count);
                    if (refusal != before) throw (RuntimeException) refusal.fillInStackTrace();
                    if (now - deadline >= 0) throw noAnswer(began);
                    refill();
                    TimeUnit.NANOSECONDS.timedWait(this, deadline - now);
                }
            } finally {
                wanted -= count;
                refill();
            }
        }

        long ahead() { return client.wall.getAsLong() - now(); }

        /**
         * Returns when the oldest IDs were asked for. The monotonic clock stands still while the machine sleeps, and in a snapshot
         * of its memory. What only the wall clock has counted since then, by how far that is ahead now, has passed too.
         */
        long asked() { return held.peek().asked - Math.max(0, ahead() - held.peek().ahead); }

        int left() { return held.stream().mapToInt(a -> a.ids().length).sum() - used; }

        Answer pop(int count) {
            Held first = held.peek();
            long asked = asked();
            var ids = new long[count];
            for (int i = 0; i < count; i++) {
                for (; used == held.peek().ids().length; used = 0) held.poll();
                ids[i] = held.peek().ids()[used++];
            }
            if (held.peek() != first) Arrays.sort(ids); // they may be from several nodes
            return new Answer(asked, ids, List.of(), null);
        }

        /** Fetches IDs, in a thread of its own, if too few are left. */
        void refill() {
            if (fetching || left() >= wanted && (left() > client.prefetch.count() / 2 || now() - restUntil < 0)) return;
            fetching = true;
            int count = Math.min(client.prefetch.count() - left() + wanted, MOST);
            var thread = new Thread(() -> fetch(count), "firn-client");
            thread.setDaemon(true);
            thread.start();
        }

        void fetch(int count) {
            Answer answer;
            long ahead = ahead();
            try {
                answer = new Call(ids(count), now() + 10_000 * MS).run();
            } catch (Exception e) {
                answer = new Answer(0, null, null, e);
            }
            synchronized (this) {
                fetching = false;
                if (answer.error() == null) held.add(new Held(answer.ids(), answer.asked(), ahead));
                else restUntil = now() + Math.max(1000 * MS, FirnException.retryAfter(answer.error()));
                if (FirnException.isFinal(answer.error())) refusal = (FirnException) answer.error();
                notifyAll();
                client.hooks.batch(name, answer.error() == null ? count : 0, expired, answer.error());
                expired = 0;
            }
        }
    }
}
