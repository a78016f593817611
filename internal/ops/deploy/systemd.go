package deploy

import "time"

// Systemd is the unit firn.service. It needs systemd 247 or newer.
type Systemd struct {
	Binary string // where firn is installed
	Config string // the file that firn serve reads
	User   string // whom it runs as, and the name of its group
	// Watchdog is how long the node may be silent before it is killed and started again. Zero is for ever.
	Watchdog time.Duration
	Stopping
}

// NewSystemd is the unit of the packages.
func NewSystemd() Systemd {
	return Systemd{
		Binary: "/usr/bin/firn", Config: "/etc/firn/firn.yaml", User: "firn", Watchdog: 30 * time.Second,
		Stopping: defaultStopping,
	}
}

// Text is the unit.
func (s Systemd) Text(o Origin) (string, error) {
	var c checks
	c.path("binary", s.Binary)
	c.path("config", s.Config)
	c.user(s.User)
	if s.Watchdog != 0 {
		c.duration("watchdog", s.Watchdog, time.Second)
	}
	c.stopping(s.Stopping)
	return c.text(o, "firn.service", s)
}
