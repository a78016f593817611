package io.github.firnid.client;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;

/** A node that behaves as a test wants. The IDs of all of them ascend. */
final class FakeNode implements AutoCloseable {
    interface Behaviour {
        void answer(FakeNode node, HttpExchange exchange, int count) throws Exception;
    }

    private static final AtomicLong LAST = new AtomicLong(1L << 60);
    private static final Pattern COUNT = Pattern.compile("count=(\\d+)");
    final List<String> calls = new CopyOnWriteArrayList<>(); // path and query
    final List<String> headers = new CopyOnWriteArrayList<>(); // Accept and Authorization
    final List<String> after = new CopyOnWriteArrayList<>(); // the ID to exceed, or ""
    final AtomicInteger requests = new AtomicInteger();
    volatile Behaviour behaviour;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CountDownLatch end = new CountDownLatch(1);
    private final String scheme;

    FakeNode(Behaviour behaviour) { this(behaviour, null); }

    FakeNode(Behaviour behaviour, SSLContext tls) {
        this.behaviour = behaviour;
        scheme = tls == null ? "http" : "https";
        try {
            var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
            if (tls == null) {
                server = HttpServer.create(address, 0);
            } else {
                var https = HttpsServer.create(address, 0);
                https.setHttpsConfigurator(new HttpsConfigurator(tls));
                server = https;
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            calls.add(exchange.getRequestMethod() + " " + exchange.getRequestURI());
            headers.add(exchange.getRequestHeaders().getFirst("Accept") + " " + exchange.getRequestHeaders().getFirst("Authorization"));
            var told = exchange.getRequestHeaders().getFirst("Firn-After");
            after.add(told == null ? "" : told);
            requests.incrementAndGet();
            String query = exchange.getRequestURI().getQuery();
            var count = COUNT.matcher(query == null ? "" : query);
            try (exchange) {
                this.behaviour.answer(this, exchange, count.find() ? Integer.parseInt(count.group(1)) : 1);
            } catch (Exception e) {
                // The client has gone.
            }
        });
        server.start();
    }

    String url() { return scheme + "://" + (scheme.equals("http") ? "127.0.0.1" : "localhost") + ":" + server.getAddress().getPort(); }

    @Override
    public void close() {
        end.countDown();
        server.stop(0);
        threads.shutdownNow();
    }

    static final Behaviour GIVES = (node, exchange, count) -> send(exchange, 200, ids(count));
    static final Behaviour HANGS = (node, exchange, count) -> node.end.await();
    static final Behaviour RESETS = (node, exchange, count) -> exchange.close();

    /** Gives IDs, each time when the test says so. */
    static Behaviour givesAfter(CountDownLatch latch) {
        return (node, exchange, count) -> {
            latch.await();
            GIVES.answer(node, exchange, count);
        };
    }

    /** Gives IDs as a node of a cluster. */
    static Behaviour of(String cluster) { return (node, exchange, count) -> send(exchange, 200, ids(count), "Firn-Cluster", cluster); }

    static Behaviour refuses(int status, String code, String... headers) {
        return says(status, "{\"error\":{\"code\":\"" + code + "\",\"message\":\"so <it> \\\"is\\\"\"}}", headers);
    }

    static Behaviour says(int status, String body, String... headers) {
        return says(status, body.getBytes(StandardCharsets.UTF_8), headers);
    }

    static Behaviour says(int status, byte[] body, String... headers) {
        return (node, exchange, count) -> send(exchange, status, body, headers);
    }

    static byte[] pack(long... ids) {
        var body = ByteBuffer.allocate(ids.length * Long.BYTES);
        body.asLongBuffer().put(ids);
        return body.array();
    }

    private static byte[] ids(int count) {
        long first = LAST.getAndAdd(count) + 1;
        var ids = new long[count];
        for (int i = 0; i < count; i++) ids[i] = first + i;
        return pack(ids);
    }

    private static void send(HttpExchange exchange, int status, byte[] body, String... headers) throws IOException {
        for (int i = 0; i < headers.length; i += 2) exchange.getResponseHeaders().set(headers[i], headers[i + 1]);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
    }
}
