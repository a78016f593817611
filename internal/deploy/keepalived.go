package deploy

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"
)

// Keepalived holds one address, the VIP, on one of two balancers, /etc/keepalived/keepalived.conf.
type Keepalived struct {
	VIP       string // the address, with its prefix: 10.0.0.100/24
	Interface string // of the network that the VIP is in
	Router    int64  // which VRRP router it is in that network, 1 to 255
	Priority  int64  // 1 to 254; who has more takes over first
	// Advert is how often the holder says that it is there: the other one takes over when three are missed.
	Advert time.Duration
	// Check is HAProxy's StatusListen. It is asked for once per CheckInterval, and Fall failures are one too many.
	Check         string
	CheckInterval time.Duration
	Fall          int64
	// Source and Peers are this balancer's address and those of the others, for networks without multicast.
	Source string
	Peers  []string
}

// NewKeepalived is a keepalived without an address yet.
func NewKeepalived() Keepalived {
	return Keepalived{
		Interface: "eth0", Router: 51, Priority: 100, Advert: 100 * time.Millisecond,
		Check: DefaultStatus, CheckInterval: time.Second, Fall: 1,
	}
}

// Address is the VIP without its prefix.
func (k Keepalived) Address() string {
	p, _ := parseVIP(k.VIP)
	return p.Addr().String()
}

// Text is the configuration.
func (k Keepalived) Text(o Origin) (string, error) {
	var c checks
	vip, err := parseVIP(k.VIP)
	c.that("vip", err)
	c.device("interface", k.Interface)
	c.between("router", k.Router, 1, 255)
	c.between("priority", k.Priority, 1, 254)
	c.from("advert", k.Advert, 10*time.Millisecond)
	if k.Advert%(10*time.Millisecond) != 0 || k.Advert > 40*time.Second {
		c.that("advert", fmt.Errorf("%v is not right; want hundredths of a second, up to 40s", k.Advert))
	}
	c.that("check", checkAddress(k.Check, false))
	c.from("check-interval", k.CheckInterval, time.Second)
	if k.CheckInterval%time.Second != 0 {
		c.that("check-interval", fmt.Errorf("%v is not right; keepalived wants whole seconds", k.CheckInterval))
	}
	c.between("fall", k.Fall, 1, 100)
	if k.Source != "" && len(k.Peers) == 0 {
		c.that("source", fmt.Errorf("%.40q has no effect without peers; give both", k.Source))
	}
	if len(k.Peers) > 0 {
		c.ip("source", k.Source, vip.Addr())
	}
	for _, peer := range k.Peers {
		c.ip("peers", peer, vip.Addr())
		if peer == k.Source {
			c.that("peers", fmt.Errorf("%s is the source; want the other balancers", peer))
		}
	}
	if c.err != nil {
		return "", c.err
	}
	return text(o, "keepalived.conf", k)
}

func parseVIP(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Bits() == 0 || !reachable(p.Addr()) {
		return p, fmt.Errorf("%.80q is no address with its prefix; want one such as 10.0.0.100/24", text)
	}
	return p, nil
}

// reachable tells whether an address is that of one machine.
func reachable(a netip.Addr) bool {
	return a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6()
}

// ip is an address of the same family as another.
func (c *checks) ip(name, text string, as netip.Addr) {
	a, err := netip.ParseAddr(text)
	if err != nil || !reachable(a) || a.Is4() != as.Is4() {
		c.that(name, fmt.Errorf("%.80q is no IP address of a balancer; want one of the family of %v", text, as))
	}
}

// decimal is a duration in seconds.
func decimal(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
