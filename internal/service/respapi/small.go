package respapi

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
)

func (c *conn) ping(args [][]byte) {
	if len(args) == 0 {
		c.simple("PONG")
		return
	}
	c.bulk(string(args[0]))
}

func (c *conn) echo(args [][]byte) { c.bulk(string(args[0])) }

// choose is SELECT.
func (c *conn) choose(args [][]byte) {
	if n, err := strconv.Atoi(string(args[0])); err != nil || n < 0 {
		c.fail("ERR", fmt.Sprintf("invalid DB index '%.20s'; want a number from 0", args[0]))
		return
	}
	c.ok()
}

// config is CONFIG GET. It answers redis-benchmark as a Redis would that stores nothing.
func (c *conn) config(args [][]byte) {
	if !equal(args[0], "get") {
		c.unknownSubcommand("config", args[0])
		return
	}
	var found []string
	for _, a := range args[1:] {
		switch {
		case equal(a, "save"):
			found = append(found, "save", "")
		case equal(a, "appendonly"):
			found = append(found, "appendonly", "no")
		}
	}
	c.pairs(len(found) / 2)
	c.bulks(found...)
}

// info is INFO, with lines as in Redis where they apply, and a section of firn.
func (c *conn) info(args [][]byte) {
	wanted := func(section string) bool {
		ok := len(args) == 0
		for _, a := range args {
			ok = ok || equal(a, section) || equal(a, "all") || equal(a, "default") || equal(a, "everything")
		}
		return ok
	}
	var b strings.Builder
	line := func(name string, value any) { fmt.Fprintf(&b, "%s:%v\r\n", name, value) }
	if wanted("server") {
		b.WriteString("# Server\r\n")
		line("redis_version", likeRedis)
		line("redis_mode", "standalone")
		line("server_name", "firn")
		line("process_id", os.Getpid())
		line("uptime_in_seconds", int64(time.Since(c.s.started).Seconds()))
		b.WriteString("\r\n")
	}
	if wanted("clients") {
		b.WriteString("# Clients\r\n")
		line("connected_clients", c.s.connected())
		b.WriteString("\r\n")
	}
	if wanted("firn") {
		c.firn(line, &b)
	}
	c.text(b.String())
}

// firn writes the section of firn.
func (c *conn) firn(line func(string, any), b *strings.Builder) {
	b.WriteString("# Firn\r\n")
	oneLine := func(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
	if err := c.s.service.Ready(); err != nil {
		line("ready", "no")
		line("why", oneLine(err))
	} else {
		line("ready", "yes")
	}
	line("cluster", c.s.service.Cluster())
	line("sequencer", peer.DefaultSequencer)
	switch here, err := c.s.service.Here(c.who, peer.DefaultSequencer); {
	case err != nil:
		line("state", oneLine(err))
	default:
		line("state", here.State)
		if here.Node != nil {
			line("node", *here.Node)
		}
	}
	b.WriteString("\r\n")
}
