package io.github.firnid.client;

import java.time.Duration;
import java.util.List;

/** Says why a call gives no IDs. */
public abstract sealed class FirnException extends RuntimeException {
    private FirnException(String message) { super(message); }
    static long retryAfter(Exception e) { return e instanceof Refused r ? r.retryAfter.toNanos() : 0; }

    /** A node refuses the call for a reason that neither another node nor another attempt would change. */
    public static final class Refused extends FirnException {
        /** The status of HTTP, such as 404. */
        public final int status;
        /** Such as "unknown_sequencer"; empty: the answer is not from a firn node. */
        public final String code;
        /** When to call the node again; zero: it does not say. */
        public final Duration retryAfter;

        Refused(String message, int status, String code, Duration retryAfter) {
            super(message);
            this.status = status;
            this.code = code;
            this.retryAfter = retryAfter;
        }

        /** Tells whether it is for the caller: to ask another node would hide the caller's mistake, or evade its limit. */
        boolean isFinal() {
            if (status == 503) return code.equals("lifetime");
            if (status == 404) return !code.isEmpty(); // without a code it is not a firn node
            return 400 <= status && status < 500 && status != 408;
        }
    }

    /** No node has given IDs in time. The message and {@link #getSuppressed} say what is wrong with each. */
    public static final class NoAnswer extends FirnException {
        NoAnswer(String why, List<Exception> nodes) {
            super(nodes.stream().map(e -> "; " + e.getMessage()).reduce("no node gave an ID in time: " + why, String::concat));
            nodes.forEach(this::addSuppressed);
        }
    }
}
