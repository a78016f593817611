package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genKubernetesHelp = `Kubernetes prints manifests for pods that form a quorum, each with a volume
(--quorum); for nodes that share an existing store (--store, or --etcd for
short); or else for one pod, a quorum of one, with a volume. Each comes with
services, a disruption budget, a network policy, and an account without rights.
Pods meet the pod security standard "restricted". With --tls-secret callers use
TLS; without it, tokens cross the cluster's network in plain text.

Name the image by its digest: a tag can come to mean another image. The network
policy allows callers to reach the ports that are served, Prometheus to reach
the metrics, and pods to reach each other, the store, DNS and the receiver of
traces; nothing else.`

const genKubernetesExamples = `  firn gen kubernetes --image $(cat image) --quorum 3 | kubectl apply -f -
  firn gen kubernetes --image $(cat image) --store etcd://etcd:2379/firn | kubectl apply -f -
  firn gen kubernetes --image $(cat image) --namespace ids --grpc --tls-secret firn-tls`

func (p *program) genKubernetes() *cobra.Command {
	k := deploy.NewKubernetes()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &k.Name, "name", "name", "the name of all objects")
		setting.Text(fs, &k.Namespace, "namespace", "name", "the namespace of all objects (default: that of kubectl)")
		setting.Text(fs, &k.Image, "image", "image",
			"the image by its digest, such as registry.example.com/firn@sha256:...;\nsee firn gen docker")
		addStore(fs, &k.Store)
		setting.Text(fs, &k.StorePasswordSecret, "store-password-secret", "name",
			"a secret whose key password holds the password of the user in\n--store")
		setting.Text(fs, &k.StoreCASecret, "store-ca-secret", "name",
			"a secret with ca.crt, the CA of the servers of --store")
		setting.List(fs, &k.Etcd, "etcd",
			"the servers of an etcd cluster: host:port, separated by commas\n(default: a quorum of one)")
		setting.Number(fs, &k.Quorum, "quorum", "", 1,
			"how many pods form the quorum: 1, 3 or 5; further --replicas are\ntheir clients")
		setting.Text(fs, &k.QuorumSecret, "quorum-secret", "name",
			"a secret with firn.key, the key of the quorum; see firn quorum key")
		setting.Number(fs, &k.Replicas, "replicas", "", 1,
			"how many nodes to run (default: 3 with --store, all of --quorum, else 1)")
		setting.Bool(fs, &k.GRPC, "grpc", "also serve gRPC, on port 9090")
		setting.Bool(fs, &k.Redis, "redis", "also serve Redis clients, on port 6379")
		setting.Text(fs, &k.TokensSecret, "tokens-secret", "name",
			"a secret with tokens.yaml, the token file; see firn token")
		setting.Text(fs, &k.SealKeySecret, "seal-key-secret", "name",
			"a secret with seal.keys, the keys that seal IDs; see firn seal-key")
		setting.Text(fs, &k.TLSSecret, "tls-secret", "name", "a secret of type kubernetes.io/tls, for TLS to callers")
		setting.Text(fs, &k.EtcdTLSSecret, "etcd-tls-secret", "name",
			"a secret with ca.crt, tls.crt and tls.key, for TLS to etcd")
		setting.Text(fs, &k.EtcdLoginSecret, "etcd-login-secret", "name",
			"a secret with username and password, to log in to etcd")
		setting.Text(fs, &k.OTLPEndpoint, "otlp-endpoint", "URL", "--otlp-endpoint of firn serve (default: no traces)")
		setting.Text(fs, &k.MonitoringNamespace, "monitoring-namespace", "name",
			"the namespace that may read the metrics, at port 9100")
		setting.Text(fs, &k.CPU, "cpu", "quantity", "the CPU that each pod requests")
		setting.Text(fs, &k.Memory, "memory", "quantity", "the memory that each pod requests, also its limit")
		setting.Text(fs, &k.Storage, "storage", "quantity", "the size of the volume of each pod that keeps data")
		setting.Duration(fs, &k.DrainDelay, "drain-delay", k.DrainDelay.String(), 0, "as for firn serve")
		setting.Duration(fs, &k.ShutdownTimeout, "shutdown-timeout", k.ShutdownTimeout.String(), 0, "as for firn serve")
	}
	c := p.genKind("kubernetes", "Print manifests for Kubernetes", genKubernetesHelp, genKubernetesExamples, flags,
		func(o deploy.Origin) (string, error) { return k.Text(o) })
	c.Aliases = []string{"k8s"}
	return c
}
