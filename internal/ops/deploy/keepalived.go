package deploy

import (
	"net/netip"
	"regexp"
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
func (k Keepalived) Address() netip.Addr {
	p, _ := netip.ParsePrefix(k.VIP) // it was checked
	return p.Addr()
}

var deviceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$`)

// Text is the configuration.
func (k Keepalived) Text(o Origin) (string, error) {
	var c checks
	vip, err := netip.ParsePrefix(k.VIP)
	c.that(err == nil && vip.Bits() > 0 && reachable(vip.Addr()), "vip",
		"%.80q is not an address with its prefix; want one such as 10.0.0.100/24", k.VIP)
	c.that(deviceName.MatchString(k.Interface), "interface",
		"%.40q is not a network interface; want up to 15 letters, digits and _.@-, such as eth0", k.Interface)
	c.number("router", k.Router, 1, 255)
	c.number("priority", k.Priority, 1, 254)
	c.duration("advert", k.Advert, 10*time.Millisecond)
	c.that(k.Advert%(10*time.Millisecond) == 0 && k.Advert <= 40*time.Second, "advert",
		"%v is not right; want hundredths of a second, up to 40s", k.Advert)
	c.address("check", k.Check, false)
	c.duration("check-interval", k.CheckInterval, time.Second)
	c.that(k.CheckInterval%time.Second == 0, "check-interval", "%v is not right; keepalived wants whole seconds",
		k.CheckInterval)
	c.number("fall", k.Fall, 1, 100)
	if len(k.Peers) > 0 {
		c.balancer("source", k.Source, vip.Addr())
	} else {
		c.that(k.Source == "", "source", "%.40q has no effect without peers; give both", k.Source)
	}
	for _, peer := range k.Peers {
		c.balancer("peers", peer, vip.Addr())
		c.that(peer != k.Source, "peers", "%s is the source; want the other balancers", peer)
	}
	return c.text(o, "keepalived.conf", k)
}

// reachable tells whether an address is that of one machine.
func reachable(a netip.Addr) bool {
	return a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6()
}

// balancer is an address of the same family as the VIP.
func (c *checks) balancer(name, text string, vip netip.Addr) {
	a, err := netip.ParseAddr(text)
	c.that(err == nil && reachable(a) && a.Is4() == vip.Is4(), name,
		"%.80q is not an IP address of a balancer; want one of the family of %v", text, vip)
}
