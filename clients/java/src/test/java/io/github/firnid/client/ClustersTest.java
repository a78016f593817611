package io.github.firnid.client;

import static io.github.firnid.client.CallTest.STILL;
import static io.github.firnid.client.CallTest.client;

import io.github.firnid.client.FirnClient.Prefetch;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

final class ClustersTest {
    static void testTheVectors() throws Exception {
        for (Object vector : (List<?>) Json.parse(Files.readString(Path.of("../conformance/clusters.json")))) {
            var clusters = new Clusters();
            for (Object each : (List<?>) ((Map<?, ?>) vector).get("answers")) {
                var answer = (Map<?, ?>) each;
                Object told = null;
                try {
                    clusters.take((String) answer.get("node"), (String) answer.get("cluster"));
                } catch (FirnException.Mixed e) {
                    told = Map.of("node", e.other, "cluster", e.otherCluster);
                    Check.equal(List.of(e.node, e.cluster), List.of(answer.get("node"), answer.get("cluster")), "who answered");
                }
                Check.equal(told, answer.get("mixed"), vector + ": " + answer);
            }
        }
    }

    static void testNoIDOfAnotherClusterIsGiven() {
        FakeNode.Behaviour x = FakeNode.of("x"), y = FakeNode.of("y");
        for (var options : List.of(new FirnClient.Option[0], new FirnClient.Option[] {new Prefetch(10, Duration.ofMinutes(1))})) {
            try (var a = new FakeNode(x); var b = new FakeNode(y); var firn = client(STILL, List.of(a, b), options)) {
                firn.sequencer().next(11); // of the second, which is the first to be asked
                var e = Check.thrown(FirnException.Mixed.class, () -> firn.sequencer().next(11));
                Check.equal(e.getMessage(), a.url() + " is of cluster x, and " + b.url() + " was of cluster y; want the nodes of one cluster", "message");
            }
        }
    }

    private ClustersTest() {}
}
