package node

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// The error of a Config names the wrong setting and its value.
func TestWrongConfig(t *testing.T) {
	for _, tt := range []struct {
		set           func(*Config)
		setting, says string
	}{
		{func(c *Config) { c.HTTPAddr = "" }, "http-addr", "there is no address"},
		{func(c *Config) { c.AdminAddr = "0.0.0.0:0" }, "admin-addr", "others can reach 0.0.0.0:0"},
		{func(c *Config) { c.AdminAddr = ":0" }, "admin-addr", "others can reach :0"},
		{func(c *Config) { c.GRPCAddr = "unix:a" }, "grpc-addr", "want one with an absolute path"},
		{func(c *Config) {
			c.GRPCAddr, c.RedisAddr = "unix:/a", "unix:/a"
		}, "redis-addr", "--grpc-addr is unix:/a, too"},
		{func(c *Config) {
			c.HTTPAddr, c.AdminAddr = "systemd:a", "systemd:a"
		}, "admin-addr", "--http-addr is systemd:a, too"},
		{func(c *Config) { c.Nodes = map[string]int64{"default": 1024} }, "node", "0 to 1023, not 1024"},
		{func(c *Config) {
			c.Region = cluster.Region{Number: 1, Of: 2048}
		}, "region", "1024 node ids for 2048 regions"},
		{func(c *Config) {
			c.Region, c.Nodes = cluster.Region{Number: 1, Of: 2}, map[string]int64{"default": 0}
		}, "node", "512 to 1023, not 0"},
		{func(c *Config) { c.BlockLeast = time.Hour }, "block-least", "at least 1h0m0s, and at most 1m0s"},
		{func(c *Config) { c.Window = -1 }, "", "window"},
		{func(c *Config) { c.Layout = firn.Layout{} }, "", "layout"},
		{func(c *Config) { c.TokensFile = "/nowhere" }, "", "/nowhere"},
		{func(c *Config) { c.TLS.Cert = "/nowhere" }, "", "its key"},
	} {
		c := testConfig(t)
		tt.set(&c)
		_, err := New(c)
		var wrong *SettingError
		if errors.As(err, &wrong); err == nil || !strings.Contains(strings.ToLower(err.Error()), tt.says) ||
			wrong == nil && tt.setting != "" || wrong != nil && wrong.Setting != tt.setting {
			t.Errorf("%s: %v; want an error about %q that says %q", tt.setting, err, tt.setting, tt.says)
		}
	}
	c := testConfig(t)
	c.Nodes = map[string]int64{"orders": 1024} // it may have a layout with more
	if _, err := New(c); err != nil {
		t.Error(err)
	}
}
