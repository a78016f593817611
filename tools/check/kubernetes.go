package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// manifests are what was read.
type manifests struct {
	accounts  []core.ServiceAccount
	services  []core.Service
	budgets   []policy.PodDisruptionBudget
	networks  []networking.NetworkPolicy
	workloads []workload
}

// workload is what makes pods.
type workload struct {
	meta.ObjectMeta
	selector *meta.LabelSelector
	pod      core.PodTemplateSpec
	headless string // the service that it is to have
	parallel bool   // all pods are started at once
	replicas int
	claims   []core.PersistentVolumeClaim // besides the pod's volumes
}

// kubernetes reads manifests into the types of Kubernetes, with every field known and none twice, and checks that they
// refer to each other as they should.
func kubernetes(in io.Reader, out io.Writer) error {
	var all manifests
	for documents := yaml.NewYAMLReader(bufio.NewReader(in)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all.check()
		}
		if err != nil {
			return err
		}
		if err := all.add(document, out); err != nil {
			return err
		}
	}
}

func (all *manifests) add(document []byte, out io.Writer) error {
	var head meta.PartialObjectMetadata
	if err := strict.Unmarshal(document, &head); err != nil {
		return err
	}
	var err error
	switch head.APIVersion + " " + head.Kind {
	case "v1 ServiceAccount":
		all.accounts, err = read(document, all.accounts)
	case "v1 Service":
		all.services, err = read(document, all.services)
	case "policy/v1 PodDisruptionBudget":
		all.budgets, err = read(document, all.budgets)
	case "networking.k8s.io/v1 NetworkPolicy":
		all.networks, err = read(document, all.networks)
	case "apps/v1 Deployment":
		var o apps.Deployment
		err = strict.UnmarshalStrict(document, &o)
		all.workloads = append(all.workloads,
			workload{ObjectMeta: o.ObjectMeta, selector: o.Spec.Selector, pod: o.Spec.Template})
	case "apps/v1 StatefulSet":
		var o apps.StatefulSet
		err = strict.UnmarshalStrict(document, &o)
		all.workloads = append(all.workloads, workload{
			ObjectMeta: o.ObjectMeta, selector: o.Spec.Selector, pod: o.Spec.Template,
			claims:   o.Spec.VolumeClaimTemplates,
			headless: o.Spec.ServiceName, parallel: o.Spec.PodManagementPolicy == apps.ParallelPodManagement,
			replicas: int(*o.Spec.Replicas),
		})
	default:
		return fmt.Errorf("%s %s is not known here", head.APIVersion, head.Kind)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", head.Kind, err)
	}
	if wrong := validation.IsDNS1123Label(head.Name); len(wrong) > 0 {
		return fmt.Errorf("%s: the name %q: %s", head.Kind, head.Name, strings.Join(wrong, "; "))
	}
	fmt.Fprintf(out, "%s %s %s\n", head.APIVersion, head.Kind, head.Name)
	return nil
}

// read adds what is in a document to others of its type.
func read[T any](document []byte, others []T) ([]T, error) {
	var one T
	err := strict.UnmarshalStrict(document, &one)
	return append(others, one), err
}

// check tells the first thing that does not fit.
func (all *manifests) check() error {
	if len(all.workloads) != 1 || len(all.accounts) != 1 || len(all.services) < 2 || len(all.budgets) != 1 ||
		len(all.networks) != 1 {
		return fmt.Errorf("%d workloads, %d accounts, %d services, %d budgets, %d network policies; want 1, 1, 2 or "+
			"more, 1, 1",
			len(all.workloads), len(all.accounts), len(all.services), len(all.budgets), len(all.networks))
	}
	w := all.workloads[0]
	if len(w.pod.Spec.Containers) != 1 {
		return fmt.Errorf("there are %d containers; want one", len(w.pod.Spec.Containers))
	}
	c := w.pod.Spec.Containers[0]
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	problem := func(format string, args ...any) error {
		return fmt.Errorf("%s: "+format, append([]any{w.Name}, args...)...)
	}
	selectors := map[string]*meta.LabelSelector{
		"its selector": w.selector, "the disruption budget": all.budgets[0].Spec.Selector,
		"the network policy": &all.networks[0].Spec.PodSelector,
	}
	for _, constraint := range w.pod.Spec.TopologySpreadConstraints {
		selectors["the spread over "+constraint.TopologyKey] = constraint.LabelSelector
	}
	for _, whose := range slices.Sorted(maps.Keys(selectors)) {
		selector, err := meta.LabelSelectorAsSelector(selectors[whose])
		if err != nil {
			return problem("%s: %w", whose, err)
		}
		if selector.Empty() || !selector.Matches(labels.Set(w.pod.Labels)) {
			return problem("%s: %v does not select the pods, which have %v", whose, selector, w.pod.Labels)
		}
	}
	headless := map[string]core.ServiceSpec{}
	for _, s := range all.services {
		if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.pod.Labels)) || len(s.Spec.Selector) == 0 {
			return problem("the service %s selects %v; the pods have %v", s.Name, s.Spec.Selector, w.pod.Labels)
		}
		for _, p := range s.Spec.Ports {
			if p.TargetPort.Type != intstr.String || !ports[p.TargetPort.StrVal] {
				return problem("the service %s sends to the port %q; there are %v", s.Name,
					p.TargetPort.String(), ports)
			}
		}
		if s.Spec.ClusterIP == core.ClusterIPNone {
			headless[s.Name] = s.Spec
		}
	}
	if _, ok := headless[w.headless]; len(headless) == 0 || w.headless != "" && !ok {
		return problem("its headless service is %q, and there are %v", w.headless, slices.Sorted(maps.Keys(headless)))
	}
	if err := quorum(w, headless[w.headless], c.Args); err != nil {
		return problem("its quorum: %w", err)
	}
	scheme := core.URISchemeHTTP
	if slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--tls-cert=") }) {
		scheme = core.URISchemeHTTPS
	}
	for _, p := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if p == nil || p.HTTPGet == nil || !ports[p.HTTPGet.Port.StrVal] || p.HTTPGet.Scheme != scheme {
			return problem("a probe asks at no port that there is, or not by %s: %v", scheme, p)
		}
	}
	if err := allows(all.networks[0].Spec, ports, c.Args); err != nil {
		return problem("the network policy: %w", err)
	}
	volumes := map[string]bool{}
	for _, v := range w.pod.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, claim := range w.claims {
		volumes[claim.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			return problem("it mounts the volume %s; want one of %v", m.Name, volumes)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 {
		return problem("no container mounts %v", volumes)
	}
	if w.pod.Spec.ServiceAccountName != all.accounts[0].Name {
		return problem("it runs as %q; the account is %q", w.pod.Spec.ServiceAccountName, all.accounts[0].Name)
	}
	return restricted(w.pod.Spec)
}

// quorum checks that the machines that the pods are told of are pods, that these are all started at once, and that they
// find each other before they are ready.
func quorum(w workload, headless core.ServiceSpec, args []string) error {
	for _, arg := range args {
		list, ok := strings.CutPrefix(arg, "--quorum=")
		if !ok {
			continue
		}
		for i, machine := range strings.Split(list, ",") {
			if want := fmt.Sprintf("%s-%d.%s:7420", w.Name, i, w.headless); machine != want || i >= w.replicas {
				return fmt.Errorf("there is %s; want %s, as one of %d pods", machine, want, w.replicas)
			}
		}
		if !w.parallel || !headless.PublishNotReadyAddresses {
			return errors.New("a pod is started, or found, only when another is ready")
		}
		return nil
	}
	return nil
}

// allows checks that callers get in to every port that there is and to no other, and that pods get out to the ports of
// what their arguments name, with DNS if they name anything, and to no other.
func allows(spec networking.NetworkPolicySpec, ports map[string]bool, args []string) error {
	if !slices.Equal(spec.PolicyTypes,
		[]networking.PolicyType{networking.PolicyTypeIngress, networking.PolicyTypeEgress}) {
		return fmt.Errorf("it is for %v; want what comes in and what goes out", spec.PolicyTypes)
	}
	in, out, named := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, rule := range spec.Ingress {
		for _, p := range rule.Ports {
			in[p.Port.String()] = true
			if name := p.Port.String(); (name == "metrics" || name == "quorum") && len(rule.From) == 0 {
				return fmt.Errorf("it lets everybody in to the port %s", name)
			}
		}
		if len(rule.Ports) == 0 {
			return errors.New("it lets in to every port")
		}
	}
	for _, rule := range spec.Egress {
		for _, p := range rule.Ports {
			out[p.Port.String()] = true
		}
		if len(rule.Ports) == 0 {
			return errors.New("it lets out to every port")
		}
	}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		if name == "--store" {
			name, value = "--etcd", servers(value)
		}
		if name == "--etcd" || name == "--quorum" || name == "--otlp-endpoint" {
			named["53"] = true
			for address := range strings.SplitSeq(value, ",") {
				named[address[strings.LastIndex(address, ":")+1:]] = true
			}
		}
	}
	if !maps.Equal(in, ports) || !maps.Equal(out, named) {
		return fmt.Errorf("in to %v and out to %v; want in to %v and out to %v", in, out, ports, named)
	}
	return nil
}

// servers are those in the address of a store, with commas between.
func servers(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	rest, _, _ = strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
	return rest
}

// restricted checks what Kubernetes' pod security standard "restricted" asks for.
func restricted(p core.PodSpec) error {
	s, c := p.SecurityContext, p.Containers[0].SecurityContext
	yes := func(b *bool) bool { return b != nil && *b }
	switch {
	case s == nil || c == nil || !yes(s.RunAsNonRoot) || s.RunAsUser == nil || *s.RunAsUser == 0:
		return errors.New("it may run as root")
	case s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault:
		return errors.New("its system calls are not filtered")
	case c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation || !yes(c.ReadOnlyRootFilesystem):
		return errors.New("it may gain privileges, or write to its image")
	case c.Capabilities == nil || len(c.Capabilities.Drop) != 1 || c.Capabilities.Drop[0] != "ALL" ||
		len(c.Capabilities.Add) > 0:
		return errors.New("it has capabilities")
	case p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken:
		return errors.New("it is given a token of the cluster")
	}
	return nil
}
