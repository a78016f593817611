package deploy

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kubernetes is everything that a cluster needs to run firn: a deployment of nodes on an etcd cluster, or one pod with an
// etcd inside; services, a disruption budget, a network policy, and an account without rights.
type Kubernetes struct {
	Name, Namespace string   // no namespace: the one that kubectl is set to
	Image           string   // by its digest
	Etcd            []string // host:port of its servers; none: one pod with an etcd inside
	Replicas        int64    // zero: 3 with Etcd, 1 without, which is all that there can be then
	GRPC, Redis     bool     // whether to serve these, too
	TokensSecret    string   // the secret that has tokens.yaml; none: all may take IDs
	TLSSecret       string   // the secret that has tls.crt and tls.key for callers; none: they speak plain text
	EtcdTLSSecret   string   // the secret that has ca.crt, tls.crt and tls.key for Etcd; none: it is asked in plain text
	EtcdLoginSecret string   // the secret that has username and password for Etcd; none: nobody logs in
	OTLPEndpoint    string   // the URL of an OpenTelemetry receiver, http://host:port or https://host:port; none: no traces
	// MonitoringNamespace is where Prometheus runs: nobody else gets at metrics.
	MonitoringNamespace string
	CPU, Memory         string // what each pod asks for
	Storage             string // of the etcd inside
	// DrainDelay and ShutdownTimeout are those of firn serve. Who stops being ready is still sent calls until every
	// machine has heard of it.
	DrainDelay, ShutdownTimeout time.Duration
}

// NewKubernetes is what firn gen kubernetes prints without flags, but for the image and etcd.
func NewKubernetes() Kubernetes {
	return Kubernetes{
		Name: "firn", MonitoringNamespace: "monitoring", CPU: "100m", Memory: "256Mi", Storage: "2Gi",
		DrainDelay: 5 * time.Second, ShutdownTimeout: defaultShutdownTimeout,
	}
}

// Scheme is that of the URLs of pods.
func (k Kubernetes) Scheme() string {
	if k.TLSSecret != "" {
		return "https"
	}
	return "http"
}

// StopTimeout is how long stopping may take.
func (k Kubernetes) StopTimeout() time.Duration { return k.DrainDelay + k.ShutdownTimeout + leaving }

// Pods is how many there are.
func (k Kubernetes) Pods() int64 {
	switch {
	case k.Replicas > 0:
		return k.Replicas
	case len(k.Etcd) > 0:
		return 3
	}
	return 1
}

// EtcdTargets are the servers of Etcd as a network policy has them.
func (k Kubernetes) EtcdTargets() (all []Target) {
	for _, address := range k.Etcd {
		if t := targetOf(address); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// OTLPTarget is the receiver of traces as a network policy has it.
func (k Kubernetes) OTLPTarget() Target {
	_, address, _ := strings.Cut(k.OTLPEndpoint, "://")
	return targetOf(address)
}

// LooksUp tells whether pods need DNS.
func (k Kubernetes) LooksUp() bool { return len(k.Etcd) > 0 || k.OTLPEndpoint != "" }

// Target is where pods may connect to. Network policies know no names: there it is the port alone.
type Target struct {
	CIDR string // of one IP address; empty: wherever a name leads
	Port string
}

func targetOf(address string) Target {
	ip, err := netip.ParseAddr(host(address))
	if err != nil {
		return Target{Port: port(address)}
	}
	return Target{netip.PrefixFrom(ip, ip.BitLen()).String(), port(address)}
}

// Text is the manifests.
func (k Kubernetes) Text(o Origin) (string, error) {
	var c checks
	c.label("name", k.Name, 50)
	if k.Namespace != "" {
		c.label("namespace", k.Namespace, 63)
	}
	c.label("monitoring-namespace", k.MonitoringNamespace, 63)
	c.digested("image", k.Image)
	c.addresses("etcd", k.Etcd, 0)
	c.between("replicas", k.Replicas, 0, 1000)
	if len(k.Etcd) == 0 && k.Replicas > 1 {
		c.that("replicas", errors.New("with the etcd inside there is one pod; want 1, or --etcd host:port,... for more"))
	}
	c.secret("tokens-secret", k.TokensSecret)
	c.secret("tls-secret", k.TLSSecret)
	c.secret("etcd-tls-secret", k.EtcdTLSSecret)
	c.secret("etcd-login-secret", k.EtcdLoginSecret)
	if len(k.Etcd) == 0 && k.EtcdTLSSecret+k.EtcdLoginSecret != "" {
		c.that("etcd", errors.New("there is a secret for an etcd cluster, and no cluster; want host:port of its servers, with commas between"))
	}
	c.url("otlp-endpoint", k.OTLPEndpoint)
	c.quantity("cpu", k.CPU, "100m or 2")
	c.quantity("memory", k.Memory, "256Mi or 1Gi")
	c.quantity("storage", k.Storage, "2Gi")
	c.from("drain-delay", k.DrainDelay, 0)
	c.from("shutdown-timeout", k.ShutdownTimeout, time.Millisecond)
	if c.err != nil {
		return "", c.err
	}
	return text(o, "k8s.yaml", k)
}

var (
	labelName = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	imageName = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/-]*(:[0-9]+/[A-Za-z0-9._/-]+)?(:[A-Za-z0-9_][A-Za-z0-9._-]*)?@sha256:[0-9a-f]{64}$`)
	quantity  = regexp.MustCompile(`^[1-9][0-9]{0,9}(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`)
)

// label is a name of something in a cluster.
func (c *checks) label(name, text string, most int) {
	yaml := map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true}
	if !labelName.MatchString(text) || len(text) > most || yaml[text] { // what YAML takes for something else is no good name
		c.that(name, fmt.Errorf("%.80q is no name in Kubernetes; want 1 to %d of a-z, 0-9 and -, such as firn", text, most))
	}
}

// secret is the name of a secret, or nothing.
func (c *checks) secret(name, text string) {
	if text != "" {
		c.label(name, text, 63)
	}
}

// digested is an image by its digest: a tag can come to mean another image, and nobody here could tell.
func (c *checks) digested(name, text string) {
	if !imageName.MatchString(text) || len(text) > 400 {
		c.that(name, fmt.Errorf("%.80q names no image by its digest; want one such as registry.example.com/firn@sha256: and 64 hex digits, as docker inspect has it in RepoDigests", text))
	}
}

// url is that of an OTLP receiver, or nothing.
func (c *checks) url(name, text string) {
	if text == "" {
		return
	}
	scheme, address, _ := strings.Cut(text, "://")
	if scheme != "http" && scheme != "https" || checkAddress(address, false) != nil {
		c.that(name, fmt.Errorf("%.80q is no address of an OTLP receiver; want http://host:port, or https:// for TLS", text))
	}
}

func (c *checks) quantity(name, text, want string) {
	if !quantity.MatchString(text) {
		c.that(name, fmt.Errorf("%.40q is no quantity; want one such as %s", text, want))
	}
}
