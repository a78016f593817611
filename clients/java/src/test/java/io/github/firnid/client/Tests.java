package io.github.firnid.client;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/** Runs all tests, or those whose names contain the argument. */
final class Tests {
    private static final List<Class<?>> CLASSES = List.of(CallTest.class, PrefetchTest.class, ClustersTest.class, ClientTest.class, TextTest.class, WholeTest.class);

    public static void main(String[] names) throws Exception {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        var failed = new ArrayList<String>();
        int run = 0;
        for (Class<?> tests : CLASSES) {
            var methods = tests.getDeclaredMethods();
            Arrays.sort(methods, Comparator.comparing(m -> m.getName()));
            for (var test : methods) {
                String name = tests.getSimpleName() + "." + test.getName();
                boolean wanted = names.length == 0 || name.contains(names[0]);
                if (test.isSynthetic() || test.getParameterCount() > 0 || !test.getName().startsWith("test") || !wanted) continue;
                run++;
                long began = System.nanoTime();
                try {
                    test.setAccessible(true);
                    test.invoke(null);
                } catch (InvocationTargetException e) {
                    failed.add(name);
                    System.err.println("FAILED " + name);
                    e.getCause().printStackTrace();
                }
                System.out.printf("%5d ms  %s%n", (System.nanoTime() - began) / 1_000_000, name);
            }
        }
        System.out.println(run + " tests, " + failed.size() + " failed " + failed);
        System.exit(failed.isEmpty() && run > 0 ? 0 : 1);
    }
}
