package deploy

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ParameterError is a parameter that is not right.
type ParameterError struct {
	Name string // as firn gen has it, without the dashes
	Err  error  // what is wrong, and what would be right
}

func (e *ParameterError) Error() string { return e.Name + ": " + e.Err.Error() }
func (e *ParameterError) Unwrap() error { return e.Err }

// checks keeps the first thing that is wrong with parameters.
type checks struct {
	err   error
	taken map[string]string // addresses to listen on, and the parameters that have them
}

// that refuses a parameter unless it is right.
func (c *checks) that(right bool, name, format string, args ...any) {
	if !right && c.err == nil {
		c.err = &ParameterError{name, fmt.Errorf(format, args...)}
	}
}

// line is a text without control characters, line breaks among them.
func (c *checks) line(name, text string) {
	c.that(!strings.ContainsFunc(text, unicode.IsControl), name,
		"%.80q has a control character in it; want one line", text)
}

// nodes are addresses of nodes: of at least one.
func (c *checks) nodes(list []string) {
	c.that(len(list) > 0, "nodes",
		"there is none; want host:port of each, with commas between, such as 10.0.0.1:8080,10.0.0.2:8080")
	c.addresses("nodes", list)
}

// addresses are different ones of servers.
func (c *checks) addresses(name string, list []string) {
	for i, text := range list {
		c.address(name, text, false)
		c.that(!slices.Contains(list[:i], text), name, "%s is there twice; want each once", text)
	}
}

// listen is where a server listens: its host may be left out, and no other parameter may have it, as far as that can be
// seen.
func (c *checks) listen(name, text string) {
	c.address(name, text, true)
	by, taken := c.taken[text]
	c.that(!taken, name, "%s is taken already, by %s; want another port", text, by)
	if c.taken == nil {
		c.taken = map[string]string{}
	}
	c.taken[text] = name
}

func (c *checks) address(name, text string, listens bool) {
	err := checkAddress(text, listens)
	c.that(err == nil, name, "%w", err)
}

var hostName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,` +
	`61}[A-Za-z0-9_])?$`)

func checkAddress(text string, listens bool) error {
	want := "10.0.0.1:8080, [2001:db8::1]:8080 or node1.example.com:8080"
	if listens {
		want = ":8080, 10.0.0.1:8080 or [::]:8080"
	}
	h, p, err := net.SplitHostPort(text)
	number, errPort := strconv.ParseUint(p, 10, 16)
	bracketed := strings.HasPrefix(text, "[")
	looksLikeIP := strings.Trim(h, "0123456789.") == "" // as 10.0.0.256 does
	switch ip, errIP := netip.ParseAddr(h); {
	case err != nil, errPort != nil, number == 0, strconv.FormatUint(number, 10) != p:
		return fmt.Errorf("%.80q is not an address; want one such as %s", text, want)
	case listens && h == "" && !bracketed:
		return nil
	case errIP == nil && ip.Zone() == "" && ip.Is6() == bracketed:
		return nil
	case len(h) <= 253 && !bracketed && hostName.MatchString(h) && !looksLikeIP:
		return nil
	}
	return fmt.Errorf("%.80q has no host that can be reached; want one such as %s", text, want)
}

// duration is of at least this long, in whole milliseconds.
func (c *checks) duration(name string, d, least time.Duration) {
	c.that(d >= least, name, "%v is too short; want at least %v", d, least)
	c.that(d <= 24*time.Hour, name, "%v is too long; want at most a day", d)
	c.that(d%time.Millisecond == 0, name, "%v is finer than a millisecond; want whole ones", d)
}

// number is a whole number.
func (c *checks) number(name string, n, least, most int64) {
	c.that(least <= n && n <= most, name, "%d is not right; want a whole number from %d to %d", n, least, most)
}

// quorum is how many machines keep the data together.
func (c *checks) quorum(n int64) {
	c.that(n == 1 || n == 3 || n == 5, "quorum",
		"%d machines are no quorum; want 1, 3 or 5: with an even number no more of them can be lost than with "+
			"one fewer", n)
}

var filePath = regexp.MustCompile(`^/[A-Za-z0-9_@+./-]*$`)

// path is a file or directory by its full name, in characters that no program takes for anything else.
func (c *checks) path(name, text string) {
	c.that(filePath.MatchString(text) && len(text) <= 255 && path.Clean(text) == text && text != "/", name,
		"%.80q is not a path that can be used; want one from / on, of letters, digits and _@+.-, such as /usr/bin/firn",
		text)
}

var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,30}$`)

// user is the name of a user or group of a machine.
func (c *checks) user(text string) { c.named("user", text) }

func (c *checks) named(name, text string) {
	c.that(userName.MatchString(text), name,
		"%.40q is not a name of a user; want up to 31 of a-z, 0-9, - and _, such as firn", text)
}

// balance is one of the ways to choose a node.
func (c *checks) balance(text string, ways []string) {
	c.that(slices.Contains(ways, text), "balance", "%.40q is not right; want one of %v", text, ways)
}
