package io.github.firnid.client;

import java.net.URI;
import java.net.http.*;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
import java.util.function.*;
import javax.net.ssl.SSLContext;

/**
 * Takes unique, time-ordered 64-bit IDs from the nodes of a firn service, over HTTP: from one that works, and from another one if
 * that fails or is slow. Many threads can and should share one client.
 *
 * <pre>{@code
 * try (var firn = new FirnClient(List.of("http://ids-1:8080", "http://ids-2:8080", "http://ids-3:8080"))) {
 *     long id = firn.sequencer().next();
 * }
 * }</pre>
 */
public final class FirnClient implements AutoCloseable {
    final List<String> nodes;
    final Hooks hooks;
    final Prefetch prefetch; // null: none
    final LongSupplier clock, wall; // nanoseconds since any instant
    final ReadWriteLock calls = new ReentrantReadWriteLock(); // calls are its readers
    final Clusters clusters = new Clusters();
    volatile boolean closed;
    private final Supplier<String> token;
    private final HttpClient http;
    private final Map<String, Sequencer> sequencers = new ConcurrentHashMap<>();

    /** A setting of a client. An IllegalArgumentException is thrown when a value is out of its range. */
    public sealed interface Option {}

    /** Sends a token, unless it is empty. Several threads at once ask for it, for every request: renew it elsewhere. */
    public record Token(Supplier<String> token) implements Option {}

    /** Says whom to trust, and which certificate to show. By default the client trusts whom the JDK trusts. */
    public record Tls(SSLContext context) implements Option {}

    /**
     * Keeps 1 to 100000 IDs of each sequencer in memory, so that one request serves many calls, and fetches more when half are
     * left. A call for more goes to a node. No ID is older than {@code maxAge} when a call returns it, counted from before its
     * request by the monotonic clock or the wall clock, whichever has counted more: one stands still while the machine sleeps.
     * Choose a count that is used within that time, and several times the time of an answer.
     */
    public record Prefetch(int count, Duration maxAge) implements Option {
        /** Keeps IDs for up to 2 s. */
        public Prefetch(int count) { this(count, Duration.ofSeconds(2)); }

        public Prefetch {
            require(count >= 1 && count <= Sequencer.MOST, "prefetch of %d IDs; want 1 to %d", count, Sequencer.MOST);
            require(!maxAge.isNegative() && !maxAge.isZero(), "prefetch of IDs up to an age of %s; want more than zero", maxAge);
        }
    }

    /**
     * Is told what a client does, for metrics and logs. Several threads call it at once and wait for it: it must be quick, and
     * must neither throw nor call the client. An error is null where there is none; the default sequencer's name is empty.
     */
    public non-sealed interface Hooks extends Option {
        /** Is called after every request to a node. It is hedged if another one of the same call had no answer yet. */
        default void attempt(String node, String sequencer, int count, Duration duration, boolean hedged, Exception error) {}

        /** Is called at the end of every call. The age is that of its oldest ID, from before its request; zero with an error. */
        default void call(String sequencer, int count, Duration duration, Duration age, Exception error) {}

        /** Is called after every fetch of IDs into memory, with how many were dropped since the last one because of their age. */
        default void batch(String sequencer, int fetched, int expired, Exception error) {}
    }

    /**
     * Makes a client of the nodes with these URLs, or of a balancer. It sends nothing, so nodes may be down. URLs are http:// or
     * https:// with a host, an optional port and nothing else, and all different, or an IllegalArgumentException is thrown.
     */
    public FirnClient(List<String> nodes, Option... options) {
        this(System::nanoTime, () -> TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()), nodes, options);
    }

    FirnClient(LongSupplier clock, LongSupplier wall, List<String> nodes, Option... options) {
        this.clock = clock;
        this.wall = wall;
        this.nodes = nodes.stream().map(node -> node.toLowerCase(Locale.ROOT).replaceAll("/$", "")).toList();
        for (String node : this.nodes) {
            boolean ok = node.matches("https?://([^/?#@:\\[\\]]+|\\[[0-9a-f:.]+])(:\\d+)?") && Collections.frequency(this.nodes, node) == 1;
            require(ok, "node %s; want such as http://ids-1:8080, each once", node.replaceAll(".*@", "...@")); // without a password
        }
        require(!nodes.isEmpty(), "no nodes; want at least one URL, such as http://ids-1:8080");
        token = last(Token.class, options).map(Token::token).orElse(() -> "");
        hooks = last(Hooks.class, options).orElse(new Hooks() {});
        prefetch = last(Prefetch.class, options).orElse(null);
        // With HTTP/2 all requests would wait behind one connection that is stuck.
        var builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(2));
        last(Tls.class, options).ifPresent(tls -> builder.sslContext(tls.context));
        http = builder.build();
    }

    private static <T extends Option> Optional<T> last(Class<T> type, Option... options) {
        return Arrays.stream(options).filter(type::isInstance).map(type::cast).reduce((a, b) -> b);
    }

    /** Returns the default sequencer. */
    public Sequencer sequencer() { return sequencer(""); }

    /**
     * Returns the sequencer of a name; an empty name is the default one. It sends nothing: calls tell whether the sequencer
     * exists. The client keeps state for every name, so names should not come from strangers.
     */
    public Sequencer sequencer(String name) { return sequencers.computeIfAbsent(name, n -> new Sequencer(this, n)); }

    /**
     * Waits for the calls in flight, which end with their timeouts at the latest. An interrupt does not shorten that. Later calls
     * throw an IllegalStateException. Requests that no call waits for end within 10 s.
     */
    @Override public void close() {
        closed = true;
        calls.writeLock().lock();
        calls.writeLock().unlock();
    }

    /** Sends a request to a node, whose IDs are to exceed another one; 0: any. */
    CompletableFuture<HttpResponse<byte[]>> send(String node, Sequencer.Query query, long after) {
        try {
            var request = HttpRequest.newBuilder(URI.create(node + query.path()));
            request.method(query.method(), HttpRequest.BodyPublishers.noBody());
            request.header("Accept", query.key().isEmpty() ? "application/octet-stream" : "application/json");
            if (after > 0) request.header("Firn-After", Long.toString(after));
            String bearer = token.get();
            require(bearer != null && bearer.matches("\\p{Graph}*"), "the token is null, or has a character that none has");
            if (!bearer.isEmpty()) request.header("Authorization", "Bearer " + bearer);
            int limit = query.key().isEmpty() ? query.count() * Long.BYTES : 4096 + query.count() * 128;
            var sent = http.sendAsync(request.build(), r -> new First(r.statusCode() == 200 ? limit : 16 << 10));
            // A node itself gives up after 10 s.
            return sent.copy().orTimeout(15, TimeUnit.SECONDS).whenComplete((response, e) -> sent.cancel(true));
        } catch (RuntimeException e) { // because of the token
            return CompletableFuture.failedFuture(e);
        }
    }

    /** Reads the first bytes of a body, and little more. */
    private static final class First implements HttpResponse.BodySubscriber<byte[]> {
        private final HttpResponse.BodySubscriber<byte[]> all = HttpResponse.BodySubscribers.ofByteArray();
        private Flow.Subscription subscription;
        private int left;

        First(int limit) { left = limit; }
        @Override public void onSubscribe(Flow.Subscription s) { all.onSubscribe(subscription = s); }
        @Override public void onError(Throwable e) { all.onError(e); }
        @Override public void onComplete() { all.onComplete(); }
        @Override public CompletionStage<byte[]> getBody() { return all.getBody(); }
        @Override public void onNext(List<ByteBuffer> some) {
            left -= some.stream().mapToInt(ByteBuffer::remaining).sum();
            all.onNext(some);
            if (left >= 0) return;
            subscription.cancel();
            onComplete();
        }
    }

    static void require(boolean ok, String message, Object... values) {
        if (!ok) throw new IllegalArgumentException(String.format(Locale.ROOT, message, values));
    }
}
