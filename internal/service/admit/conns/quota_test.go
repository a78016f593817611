package conns

import (
	"net"
	"net/netip"
	"testing"
)

func at(host string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 7))
}

// One address gets nearly all, and never all.
func TestQuota(t *testing.T) {
	q := NewQuota(16)
	for i := range 15 {
		if ok := q.Take(at("10.0.0.1")); ok != (i < 14) {
			t.Errorf("%d of 16 for one address: %v", i+1, ok)
		}
	}
	for i := range 3 {
		if ok := q.Take(at("10.0.0.2")); ok != (i < 2) {
			t.Errorf("%d of the last 2 for another: %v", i+1, ok)
		}
	}
	q.Give(at("10.0.0.2"))
	if q.Take(at("10.0.0.1")) || !q.Take(at("10.0.0.3")) || q.Take(at("10.0.0.4")) {
		t.Error("what is given back is not for others")
	}
	if q := NewQuota(1); !q.Take(at("10.0.0.1")) {
		t.Error("there is none of one")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
