package io.github.firnid.client;

import java.time.Duration;
import java.util.List;

/** Says why a call gives no IDs. */
public abstract sealed class FirnException extends RuntimeException {
    private FirnException(String message) { super(message); }
    /** Tells whether an error is for the caller: to ask another node would hide the caller's mistake, or evade its limit. */
    static boolean isFinal(Exception e) { return e instanceof Mixed || e instanceof Refused r && r.isFinal(); }
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

        private boolean isFinal() {
            if (status == 503) return code.equals("lifetime");
            if (status == 404) return !code.isEmpty(); // without a code it is not a firn node
            return 400 <= status && status < 500 && status != 408;
        }
    }

    /** Nodes of several clusters answer. They would give the same IDs, so the client takes none from those it met later. */
    public static final class Mixed extends FirnException {
        /** The node that answered, and its cluster. */
        public final String node, cluster;
        /** The node that answered last before, and its cluster, from which the client takes IDs. */
        public final String other, otherCluster;

        Mixed(String node, String cluster, String other, String otherCluster) {
            super(node + " is of cluster " + cluster + ", and " + other + " was of cluster " + otherCluster + "; want the nodes of one cluster");
            this.node = node;
            this.cluster = cluster;
            this.other = other;
            this.otherCluster = otherCluster;
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
