package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestCheckMachines(t *testing.T) {
	for list, want := range map[string]string{
		"":                            "name 1, 3 or 5",
		"a:1":                         "",
		"a:1 b:1":                     "2 machines are named, and stop when one of them does; name 1 or 3",
		"a:1 b:1 c:1":                 "",
		"a:1 b:1 a:1":                 "a:1 is named twice",
		"a:1 b:1 c:1 d:1":             "4 machines are named, which survive the loss of 1, as 3 do; name 3 or 5",
		"a:1 b:1 c:1 d:1 e:1 f:1 g:1": "7 machines are named",
		"a":                           `"a" is not the address of a machine; want host:port`,
		":7420":                       "want host:port",
		"a:0":                         "want host:port",
		"a:70000":                     "want host:port",
		"a:http":                      "want host:port",
		"https://a:1":                 "want host:port",
		"0.0.0.0:7420":                "others can't connect to",
		"[::]:7420":                   "others can't connect to",
		"[fe80::1]:7420":              "",
		"a@b:7420":                    "others can't connect to",
	} {
		err := checkMachines(strings.Fields(list))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", list, err, want)
		}
	}
}

// A machine finds itself by its name, else by its addresses.
func TestFind(t *testing.T) {
	me := here{"ids-1", []net.IP{net.ParseIP("10.0.0.1"), net.ParseIP("127.0.0.1")}}
	known := map[string]string{"ids-1": "10.0.0.9", "ids-2": "10.0.0.2", "ids-3": "10.0.0.3", "other": "10.0.0.1"}
	resolve := func(_ context.Context, host string) ([]net.IPAddr, error) {
		if ip := net.ParseIP(host); ip != nil {
			return []net.IPAddr{{IP: ip}}, nil
		}
		if ip, ok := known[host]; ok {
			return []net.IPAddr{{IP: net.ParseIP(ip)}}, nil
		}
		return nil, fmt.Errorf("lookup %s: no such host", host)
	}
	for list, want := range map[string]string{
		"ids-1:1 ids-2:1 ids-3:1":                "ids-1:1",
		"IDS-1:1 ids-2:1 ids-3:1":                "IDS-1:1",
		"ids-0.firn:1 ids-1.firn:1 ids-2.firn:1": "ids-1.firn:1",
		"ids-2:1 ids-3:1 other:1":                "other:1",
		"ids-2:1 ids-3:1":                        "",
		"10.0.0.3:1 10.0.0.1:1 10.0.0.2:1":       "10.0.0.1:1",
		"127.0.0.1:1 127.0.0.1:2 127.0.0.1:3":    "several",
		"ids-2:1 nowhere:1 ids-3:1":              "unknown",
		"ids-1:1 nowhere:1 ids-3:1":              "ids-1:1",
	} {
		got, err := me.find(t.Context(), strings.Fields(list), resolve)
		several, unknown := new(SeveralError), new(unknownError)
		switch {
		case errors.As(err, &several):
			got = "several"
		case errors.As(err, &unknown):
			got = "unknown"
		}
		if got != want {
			t.Errorf("%s: %q, %v; want %q", list, got, err, want)
		}
	}
}
