package host

import (
	"net"
	"testing"
)

func TestOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "::ffff:10.1.2.3": "10.1.2.3/32", "2001:db8::1:2": "2001:db8::/64",
		"fe80::1%eth0": "fe80::/64",
	} {
		a, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(address, "1234"))
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(a).String(); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	for _, a := range []net.Addr{&net.UnixAddr{Name: "/run/x", Net: "unix"}, nil} {
		if got := Of(a); got.IsValid() {
			t.Errorf("%v is from %v", a, got)
		}
	}
}
