package deploy

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kubernetes is everything that a cluster needs to run firn: a deployment of nodes on a store, pods that are a quorum
// with a volume each, or one pod that is a quorum of one; services, a disruption budget, a network policy, and an
// account without rights.
type Kubernetes struct {
	Name, Namespace string   // no namespace: the one that kubectl is set to
	Image           string   // by its digest
	Store           Store    // that others keep; zero: Etcd
	Etcd            []string // host:port of its servers; none: Quorum
	// how many pods keep the data together: 1, 3 or 5; zero: one pod with a volume, unless there is Store or Etcd
	Quorum        int64
	QuorumSecret  string // the secret that has firn.key for Quorum
	Replicas      int64  // zero: 3 with Store or Etcd, as many as Quorum with that, else 1
	GRPC, Redis   bool   // whether to serve these, too
	TokensSecret  string // the secret that has tokens.yaml; none: all may take IDs
	SealKeySecret string // the secret that has seal.keys; none: IDs are not sealed
	TLSSecret     string // the secret that has tls.crt and tls.key for callers; none: they speak plain text
	// the secret that has ca.crt, tls.crt and tls.key for Etcd; none: it is asked in plain text
	EtcdTLSSecret   string
	EtcdLoginSecret string // the secret that has username and password for Etcd; none: nobody logs in
	// the URL of an OpenTelemetry receiver, http://host:port or https://host:port; none: no traces
	OTLPEndpoint string

	StorePasswordSecret string // the secret that has password for the user of Store; none: there is no password
	// the secret that has ca.crt, which the servers of Store are checked with; none: as the address says
	StoreCASecret string

	// MonitoringNamespace is where Prometheus runs: nobody else gets at metrics.
	MonitoringNamespace string
	CPU, Memory         string // what each pod asks for
	Storage             string // of each pod that keeps data
	Stopping
}

// NewKubernetes is what firn gen kubernetes prints without flags, but for the image and etcd.
func NewKubernetes() Kubernetes {
	return Kubernetes{
		Name: "firn", QuorumSecret: "firn-quorum", MonitoringNamespace: "monitoring", CPU: "100m", Memory: "256Mi",
		Storage: "2Gi",
		// A pod that stops being ready is still sent calls until every machine has heard of it.
		Stopping: Stopping{DrainDelay: 5 * time.Second, ShutdownTimeout: defaultStopping.ShutdownTimeout},
	}
}

// Scheme is that of the URLs of pods.
func (k Kubernetes) Scheme() string {
	if k.TLSSecret != "" {
		return "https"
	}
	return "http"
}

// Pods is how many there are.
func (k Kubernetes) Pods() int64 {
	switch {
	case k.Replicas > 0:
		return k.Replicas
	case k.Remote():
		return 3
	}
	return max(1, k.Quorum)
}

// Remote reports whether others keep the data.
func (k Kubernetes) Remote() bool { return k.Store.Address != "" || len(k.Etcd) > 0 }

// Machines are the addresses of the pods that are the quorum. Pods have them by the headless service of their
// StatefulSet, and complete them with their own namespace and the cluster's domain.
func (k Kubernetes) Machines() (all []string) {
	for i := range k.Quorum {
		all = append(all, fmt.Sprintf("%s-%d.%s-quorum:%d", k.Name, i, k.Name, quorumPort))
	}
	return all
}

// quorumPort is where the machines of a quorum listen for each other.
const quorumPort = 7420

// Targets are the servers of the store and the receiver of traces, as a network policy has them.
func (k Kubernetes) Targets() (all []Target) {
	addresses := slices.Concat(k.Store.Servers, k.Etcd)
	if _, address, ok := strings.Cut(k.OTLPEndpoint, "://"); ok {
		addresses = append(addresses, address)
	}
	for _, address := range addresses {
		host, port, _ := net.SplitHostPort(address) // it was checked
		t := Target{Port: port}
		if ip, err := netip.ParseAddr(host); err == nil {
			t.CIDR = netip.PrefixFrom(ip, ip.BitLen()).String()
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// Target is where pods may connect to. Network policies know no names: there it is the port alone.
type Target struct {
	CIDR string // of one IP address; empty: wherever a name leads
	Port string
}

// Text is the manifests.
func (k Kubernetes) Text(o Origin) (string, error) {
	var c checks
	c.label("name", k.Name, 50)
	c.optional("namespace", k.Namespace)
	c.label("monitoring-namespace", k.MonitoringNamespace, 63)
	// A tag can come to mean another image, and nobody here could tell.
	c.that(imageName.MatchString(k.Image) && len(k.Image) <= 400, "image",
		"%.80q names no image by its digest; want one such as registry.example.com/firn@sha256: and 64 hex digits, as "+
			"docker inspect has it in RepoDigests", k.Image)
	c.store(k.Store)
	c.that(k.Store.Address == "" || len(k.Etcd) == 0 && k.Quorum == 0, "store",
		"it is one store, and etcd or quorum another; want one of them")
	c.optional("store-password-secret", k.StorePasswordSecret)
	c.optional("store-ca-secret", k.StoreCASecret)
	c.that(k.Store.Address != "" || k.StorePasswordSecret+k.StoreCASecret == "", "store",
		"there is a secret for a store, and no store; want its address")
	c.addresses("etcd", k.Etcd)
	if k.Quorum != 0 {
		c.quorum(k.Quorum)
		c.that(len(k.Etcd) == 0, "quorum", "it is a store of its own, and etcd is another; want one of the two")
		c.that(k.Replicas == 0 || k.Replicas >= k.Quorum, "replicas",
			"%d is fewer than the %d pods of the quorum; want at least those", k.Replicas, k.Quorum)
	}
	c.label("quorum-secret", k.QuorumSecret, 63)
	c.number("replicas", k.Replicas, 0, 1000)
	c.that(k.Remote() || k.Quorum > 0 || k.Replicas <= 1, "replicas",
		"a quorum of one has one pod; want 1, or --quorum 3 or --store for more")
	c.optional("tokens-secret", k.TokensSecret)
	c.optional("seal-key-secret", k.SealKeySecret)
	c.optional("tls-secret", k.TLSSecret)
	c.optional("etcd-tls-secret", k.EtcdTLSSecret)
	c.optional("etcd-login-secret", k.EtcdLoginSecret)
	c.that(len(k.Etcd) > 0 || k.EtcdTLSSecret+k.EtcdLoginSecret == "", "etcd",
		"there is a secret for an etcd cluster, and no cluster; want host:port of its servers, with commas between")
	scheme, address, _ := strings.Cut(k.OTLPEndpoint, "://")
	c.that(k.OTLPEndpoint == "" || (scheme == "http" || scheme == "https") && checkAddress(address, false) == nil,
		"otlp-endpoint",
		"%.80q is not an address of an OTLP receiver; want http://host:port, or https:// for TLS", k.OTLPEndpoint)
	c.quantity("cpu", k.CPU, "100m or 2")
	c.quantity("memory", k.Memory, "256Mi or 1Gi")
	c.quantity("storage", k.Storage, "2Gi")
	c.stopping(k.Stopping)
	return c.text(o, "k8s.yaml", k)
}

var (
	labelName = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	imageName = regexp.MustCompile(
		`^[a-z0-9][A-Za-z0-9._/-]*(:[0-9]+/[A-Za-z0-9._/-]+)?(:[A-Za-z0-9_][A-Za-z0-9._-]*)?@sha256:[0-9a-f]{64}$`)
	quantity = regexp.MustCompile(`^[1-9][0-9]{0,9}(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`)
	// taken by YAML for something else than a text
	yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// label is a name of something in a cluster.
func (c *checks) label(name, text string, most int) {
	c.that(labelName.MatchString(text) && len(text) <= most && !slices.Contains(yamlWords, text), name,
		"%.80q is not a name in Kubernetes; want 1 to %d of a-z, 0-9 and -, such as firn", text, most)
}

// optional is a name of something in a cluster, or nothing.
func (c *checks) optional(name, text string) {
	if text != "" {
		c.label(name, text, 63)
	}
}

func (c *checks) quantity(name, text, want string) {
	c.that(quantity.MatchString(text), name, "%.40q is not a quantity; want one such as %s", text, want)
}
