package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
)

const genKubernetesHelp = `Kubernetes prints manifests for Kubernetes: a deployment of nodes that share an etcd
cluster, or, without --etcd, one pod with an etcd inside and a volume; services, a
disruption budget, a network policy, and an account without rights. Pods meet the
pod security standard "restricted". --tls-secret has callers speak TLS; without it
tokens pass the cluster's network in plain text.

The image is named by its digest, not by a tag alone, which can come to mean
another image. The network policy lets callers in to the ports that are served,
Prometheus to the metrics, and pods out to etcd, DNS and the receiver of traces;
nothing else comes in or goes out.`

const genKubernetesExamples = `  firn gen kubernetes --image $(cat image) --etcd etcd:2379 | kubectl apply -f -
  firn gen kubernetes --image $(cat image) --namespace ids --grpc --tls-secret firn-tls`

func (p *program) genKubernetes() *cobra.Command {
	k := deploy.NewKubernetes()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &k.Name, "name", "name", "what all of it is called")
		setting.Text(fs, &k.Namespace, "namespace", "name", "where it is put (default: where kubectl puts it)")
		setting.Text(fs, &k.Image, "image", "image", "the image by its digest, such as registry.example.com/firn@sha256:...;\nsee firn gen docker")
		setting.List(fs, &k.Etcd, "etcd", "the etcd cluster to use: host:port of its servers, with commas\nbetween (default: one inside)")
		setting.Number(fs, &k.Replicas, "replicas", "", 1, "how many nodes there are (default: 3 with --etcd, else 1)")
		setting.Bool(fs, &k.GRPC, "grpc", "serve gRPC, too, on port 9090")
		setting.Bool(fs, &k.Redis, "redis", "serve Redis clients, too, on port 6379")
		setting.Text(fs, &k.TokensSecret, "tokens-secret", "name", "a secret whose tokens.yaml says who may come, see firn token")
		setting.Text(fs, &k.TLSSecret, "tls-secret", "name", "a secret of type kubernetes.io/tls, for TLS to callers")
		setting.Text(fs, &k.EtcdTLSSecret, "etcd-tls-secret", "name", "a secret whose ca.crt, tls.crt and tls.key are for TLS to etcd")
		setting.Text(fs, &k.EtcdLoginSecret, "etcd-login-secret", "name", "a secret whose username and password log in to etcd")
		setting.Text(fs, &k.OTLPEndpoint, "otlp-endpoint", "URL", "that of firn serve (default: no traces)")
		setting.Text(fs, &k.MonitoringNamespace, "monitoring-namespace", "name", "from where metrics may be asked for, at port 9100")
		setting.Text(fs, &k.CPU, "cpu", "quantity", "the CPU that each pod asks for")
		setting.Text(fs, &k.Memory, "memory", "quantity", "the memory that each pod asks for, and may have")
		setting.Text(fs, &k.Storage, "storage", "quantity", "the volume of an etcd inside")
		setting.Duration(fs, &k.DrainDelay, "drain-delay", k.DrainDelay.String(), 0, "that of firn serve")
		setting.Duration(fs, &k.ShutdownTimeout, "shutdown-timeout", k.ShutdownTimeout.String(), 0, "that of firn serve")
	}
	c := p.genKind("kubernetes", "Print manifests for Kubernetes", genKubernetesHelp, genKubernetesExamples, flags,
		func(o deploy.Origin) (string, error) { return k.Text(o) })
	c.SuggestFor = []string{"k8s"}
	return c
}
