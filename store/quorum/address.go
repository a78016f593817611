package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store/internal/etcdserver"
)

// checkAddress returns an error unless an address is a host and a port.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	n, notNumber := strconv.Atoi(port)
	switch {
	case err != nil || host == "" || notNumber != nil || n < 1 || n > 65535:
		return fmt.Errorf("%.100q is not the address of a machine; want host:port, such as ids-1:7420", address)
	case strings.ContainsAny(host, ",=/@ ") || net.ParseIP(host).IsUnspecified():
		return fmt.Errorf("%.100q has a host that others can't connect to; want a name or an address, such as "+
			"ids-1:7420", address)
	}
	return nil
}

// checkMachines returns an error for a list that is no quorum.
func checkMachines(machines []string) error {
	for i, address := range machines {
		if err := checkAddress(address); err != nil {
			return err
		}
		if slices.Contains(machines[:i], address) {
			return fmt.Errorf("%s is named twice; name each machine once", address)
		}
	}
	switch n := len(machines); {
	case n == 0:
		return errors.New("no machine is named; name 1, 3 or 5")
	case n > 5:
		return fmt.Errorf("%d machines are named, and each write waits for a majority of them; name 1, 3 or 5, and "+
			"start the others as their clients", n)
	case n == 2:
		return errors.New("2 machines are named, and stop when one of them does; name 1 or 3")
	case n%2 == 0:
		return fmt.Errorf("%d machines are named, which survive the loss of %d, as %d do; name %d or %d", n,
			(n-1)/2, n-1, n-1, n+1)
	}
	return nil
}

// checkProxy returns an error if the environment has the machines' traffic go through a proxy: etcd would use it.
func checkProxy(machines []string) error {
	for _, address := range machines {
		r, err := http.NewRequest(http.MethodGet, etcdserver.URL(address), nil)
		if err != nil {
			return err
		}
		if proxy, err := http.ProxyFromEnvironment(r); err != nil || proxy != nil {
			return fmt.Errorf("the environment variable HTTPS_PROXY sends what is for %s to a proxy; add its host to "+
				"NO_PROXY", address)
		}
	}
	return nil
}

// onLoopback reports whether only this machine reaches all the machines.
func onLoopback(machines []string) bool {
	return !slices.ContainsFunc(machines, func(address string) bool {
		host, _, _ := net.SplitHostPort(address)
		return host != "localhost" && !net.ParseIP(host).IsLoopback()
	})
}

// here is what this machine is known by.
type here struct {
	host      string // its host name
	addresses []net.IP
}

func thisMachine() (h here) {
	h.host, _ = os.Hostname()
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			h.addresses = append(h.addresses, n.IP)
		}
	}
	return h
}

// find returns the machine that is this one: the one whose host is this machine's name, in full or up to the first
// dot, or else resolves to an address of this machine. It returns "" if there is none. An error is returned when there
// are several, and when no host is known to be this machine and some can't be resolved.
func (h here) find(ctx context.Context, machines []string,
	resolve func(context.Context, string) ([]net.IPAddr, error),
) (string, error) {
	var named, addressed []string
	var unresolved error
	for _, address := range machines {
		host, _, _ := net.SplitHostPort(address)
		first, _, dots := strings.Cut(host, ".")
		if strings.EqualFold(host, h.host) || dots && net.ParseIP(host) == nil && strings.EqualFold(first, h.host) {
			named = append(named, address)
			continue
		}
		ips, err := resolve(ctx, host)
		if err != nil {
			unresolved = fmt.Errorf("%s: %w", address, err)
		}
		if slices.ContainsFunc(ips, func(ip net.IPAddr) bool { return slices.ContainsFunc(h.addresses, ip.IP.Equal) }) {
			addressed = append(addressed, address)
		}
	}
	found := addressed
	if len(named) > 0 {
		found = named
	}
	switch {
	case len(found) > 1:
		return "", &SeveralError{found}
	case len(found) == 1:
		return found[0], nil
	case unresolved != nil:
		return "", &unknownError{unresolved}
	}
	return "", nil
}

// SeveralError is returned by Start when Config.Self is empty and several of the Machines are this machine.
type SeveralError struct{ Found []string }

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%s are all this machine; say which of them this process is, or that it is none",
		strings.Join(e.Found, ", "))
}

// unknownError is returned when nobody can tell whether this machine is one of the quorum. It may pass.
type unknownError struct{ err error }

func (e *unknownError) Error() string {
	return fmt.Sprintf("can't find out whether this machine is one of the quorum: %v", e.err)
}

func (e *unknownError) Unwrap() error { return e.err }
