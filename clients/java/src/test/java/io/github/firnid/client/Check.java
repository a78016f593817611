package io.github.firnid.client;

import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.function.BooleanSupplier;

/** What tests claim. */
final class Check {
    private Check() {}

    static void that(boolean ok, String what) {
        if (!ok) throw new AssertionError(what);
    }

    static void equal(Object got, Object want, String what) {
        that(Objects.equals(got, want), what + ": " + got + "; want " + want);
    }

    /** Returns what is thrown. */
    static <T extends Throwable> T thrown(Class<T> type, Callable<?> body) {
        try {
            Object result = body.call();
            throw new AssertionError("it returns " + result + "; want a " + type.getSimpleName());
        } catch (Throwable e) {
            if (type.isInstance(e)) return type.cast(e);
            throw new AssertionError("it throws " + e + "; want a " + type.getSimpleName(), e);
        }
    }

    static void refused(String want, Callable<?> body) {
        var e = thrown(IllegalArgumentException.class, body);
        that(e.getMessage().contains(want), "\"" + e.getMessage() + "\"; want \"" + want + "\" in it");
    }

    /** Waits up to 10 s. */
    static void until(BooleanSupplier condition, String what) {
        for (int i = 0; !condition.getAsBoolean(); i++) {
            that(i < 10_000, what + " does not come about");
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    static void ascend(long[] ids) {
        for (int i = 1; i < ids.length; i++) {
            if (ids[i - 1] >= ids[i]) throw new AssertionError(ids[i] + " comes after " + ids[i - 1]);
        }
    }
}
