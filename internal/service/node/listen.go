package node

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// FromSystemd begins an address whose socket systemd passes to the process, and goes on with the socket's name: that of
// FileDescriptorName= in its unit.
const FromSystemd = "systemd:"

// address is an address of a Config with its name.
type address struct {
	Address
	at string
}

// addresses returns the addresses to listen on.
func (c Config) addresses() (all []address) {
	for _, one := range []address{
		{Public, c.HTTPAddr},
		{Admin, c.AdminAddr},
		{GRPC, c.GRPCAddr},
		{Redis, c.RedisAddr},
		{Metrics, c.MetricsAddr},
	} {
		if one.at != "" {
			all = append(all, one)
		}
	}
	return all
}

// validateAddresses returns a SettingError for an address that is not valid.
func (c Config) validateAddresses() error {
	used := map[string]string{}
	for _, one := range c.addresses() {
		switch {
		case unixsocket.Is(one.at):
			if _, err := unixsocket.Parse(one.at); err != nil {
				return &SettingError{one.setting, err}
			}
		case strings.HasPrefix(one.at, FromSystemd): // where that listens is known once it is taken
		case one.Address == Admin:
			if err := c.checkReach(one.at); err != nil {
				return err
			}
			continue
		default:
			continue
		}
		if other, twice := used[one.at]; twice {
			return settingf(one.setting, "--%s is %s, too; want another socket for each", other, one.at)
		}
		used[one.at] = one.setting
	}
	return nil
}

// checkReach returns a SettingError if other machines reach administrators at host:port, and there are no tokens.
func (c Config) checkReach(at string) error {
	if host, _, _ := net.SplitHostPort(at); c.TokensFile == "" && !auth.Loopback(host) {
		return settingf(Admin.setting,
			"others can reach %s, so that it needs tokens; want 127.0.0.1 or [::1], or tokens", at)
	}
	return nil
}

// Listen listens on an address of a Config. The error is a SettingError.
func (c Config) Listen(a Address, at string) (net.Listener, error) {
	var l net.Listener
	var err error
	switch name, passed := strings.CutPrefix(at, FromSystemd); {
	case passed:
		l, err = take(name)
	case unixsocket.Is(at):
		var path string
		if path, err = unixsocket.Parse(at); err == nil {
			l, err = unixsocket.Listen(path, c.SocketMode)
		}
	default:
		l, err = net.Listen("tcp", at)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if err != nil {
		return nil, settingf(a.setting, "can't listen on %s: %w", at, err)
	}
	return l, nil
}

// passed are the sockets that systemd has passed to this process, by name. Take removes what it returns.
var passed = struct {
	sync.Mutex
	once   sync.Once
	byName map[string][]net.Listener
}{}

// take returns the socket that systemd has passed under a name.
func take(name string) (net.Listener, error) {
	passed.Lock()
	defer passed.Unlock()
	passed.once.Do(func() { passed.byName, _ = activation.ListenersWithNames() }) // it returns no error
	switch all := passed.byName[name]; len(all) {
	case 0:
		others := "no socket"
		if len(passed.byName) > 0 {
			others = "only " + strings.Join(slices.Sorted(maps.Keys(passed.byName)), ", ")
		}
		return nil, fmt.Errorf("systemd passes %s to the process; want one with FileDescriptorName=%s, see firn gen "+
			"systemd-socket", others, name)
	case 1:
		delete(passed.byName, name)
		return all[0], nil
	default:
		return nil, fmt.Errorf("systemd passes %d sockets of this name; want one: one ListenStream= in a unit",
			len(all))
	}
}

// leftOver returns the names of the sockets that systemd has passed and that no address has taken.
func leftOver() []string {
	passed.Lock()
	defer passed.Unlock()
	return slices.Sorted(maps.Keys(passed.byName))
}
