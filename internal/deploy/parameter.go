package deploy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParameterError is a parameter that is not right.
type ParameterError struct {
	Name string // as firn gen has it, without the dashes
	Err  error  // what is wrong, and what would be right
}

func (e *ParameterError) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *ParameterError) Unwrap() error { return e.Err }

// checks keeps the first thing that is wrong with parameters.
type checks struct{ err error }

func (c *checks) that(name string, err error) {
	if c.err == nil && err != nil {
		c.err = &ParameterError{name, err}
	}
}

var (
	hostName   = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
	userName   = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,30}$`)
	filePath   = regexp.MustCompile(`^/[A-Za-z0-9_@+./-]*$`)
	deviceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$`)
)

// addresses are at least so many different ones of servers.
func (c *checks) addresses(name string, list []string, least int) {
	if len(list) < least {
		c.that(name, errors.New("there is none; want host:port of each, with commas between, such as 10.0.0.1:8080,10.0.0.2:8080"))
	}
	seen := map[string]bool{}
	for _, text := range list {
		c.that(name, checkAddress(text, false))
		if seen[text] {
			c.that(name, fmt.Errorf("%s is there twice; want each once", text))
		}
		seen[text] = true
	}
}

// listen is where a server listens: its host may be left out.
func (c *checks) listen(name, text string) { c.that(name, checkAddress(text, true)) }

func checkAddress(text string, listens bool) error {
	want := "10.0.0.1:8080, [2001:db8::1]:8080 or node1.example.com:8080"
	if listens {
		want = ":8080, 10.0.0.1:8080 or [::]:8080"
	}
	h, p, err := net.SplitHostPort(text)
	number, errPort := strconv.ParseUint(p, 10, 16)
	bracketed := strings.HasPrefix(text, "[")
	switch ip, errIP := netip.ParseAddr(h); {
	case err != nil, errPort != nil, number == 0, strconv.FormatUint(number, 10) != p:
		return fmt.Errorf("%.80q is no address; want one such as %s", text, want)
	case listens && h == "" && !bracketed:
		return nil
	case errIP == nil && ip.Zone() == "" && ip.Is6() == bracketed:
		return nil
	case len(h) <= 253 && !bracketed && hostName.MatchString(h) && !allDigits(h):
		return nil
	}
	return fmt.Errorf("%.80q has no host that can be reached; want one such as %s", text, want)
}

// allDigits tells whether a host is what is left of an IP address that is wrong: 10.0.0.256.
func allDigits(host string) bool { return strings.Trim(host, "0123456789.") == "" }

func host(address string) string {
	h, _, _ := net.SplitHostPort(address) // it was checked
	return h
}

func port(address string) string {
	_, p, _ := net.SplitHostPort(address)
	return p
}

// from is a duration of at least this long, in whole milliseconds.
func (c *checks) from(name string, d, least time.Duration) {
	switch {
	case d < least:
		c.that(name, fmt.Errorf("%v is too short; want at least %v", d, least))
	case d > 24*time.Hour:
		c.that(name, fmt.Errorf("%v is too long; want at most a day", d))
	case d%time.Millisecond != 0:
		c.that(name, fmt.Errorf("%v is finer than a millisecond; want whole ones", d))
	}
}

// between is a whole number.
func (c *checks) between(name string, n, least, most int64) {
	if n < least || n > most {
		c.that(name, fmt.Errorf("%d is not right; want a whole number from %d to %d", n, least, most))
	}
}

// path is a file or directory by its full name, in characters that no program takes for anything else.
func (c *checks) path(name, text string) {
	if !filePath.MatchString(text) || len(text) > 255 || path.Clean(text) != text || text == "/" {
		c.that(name, fmt.Errorf("%.80q is no path that can be used; want one from / on, of letters, digits and _@+.-, such as /usr/bin/firn", text))
	}
}

// user is the name of a user or group of a machine.
func (c *checks) user(name, text string) {
	if !userName.MatchString(text) {
		c.that(name, fmt.Errorf("%.40q is no name of a user; want up to 31 of a-z, 0-9, - and _, such as firn", text))
	}
}

func (c *checks) oneOf(name, text string, words []string) {
	if !slices.Contains(words, text) {
		c.that(name, fmt.Errorf("%.40q is not right; want one of %v", text, words))
	}
}

// hasNames tells whether there is a host among addresses that is no IP address.
func hasNames(addresses []string) bool {
	return slices.ContainsFunc(addresses, func(a string) bool {
		_, err := netip.ParseAddr(host(a))
		return err != nil
	})
}

// device is the name of a network interface.
func (c *checks) device(name, text string) {
	if !deviceName.MatchString(text) {
		c.that(name, fmt.Errorf("%.40q is no network interface; want up to 15 letters, digits and _.@-, such as eth0", text))
	}
}
