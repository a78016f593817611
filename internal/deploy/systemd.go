package deploy

import "time"

// Systemd is the unit firn.service. It needs systemd 247 or newer.
type Systemd struct {
	Binary string // where firn is installed
	Config string // the file that firn serve reads
	User   string // whom it runs as, and the name of its group
	// Watchdog is how long the node may be silent before it is killed and started anew. Zero is for ever.
	Watchdog time.Duration
	// DrainDelay and ShutdownTimeout are those of firn serve: how long it takes to stop.
	DrainDelay, ShutdownTimeout time.Duration
}

// NewSystemd is the unit of the packages.
func NewSystemd() Systemd {
	return Systemd{
		Binary: "/usr/bin/firn", Config: "/etc/firn/firn.yaml", User: "firn", Watchdog: 30 * time.Second,
		DrainDelay: defaultDrainDelay, ShutdownTimeout: defaultShutdownTimeout,
	}
}

// What firn serve does when nobody says otherwise. A test compares them with its flags.
const (
	defaultDrainDelay      = time.Second
	defaultShutdownTimeout = 10 * time.Second
)

// leaving is how long a node may take, when it has served everybody, to leave the cluster and to close an etcd inside.
const leaving = 20 * time.Second

// StopTimeout is how long stopping may take.
func (s Systemd) StopTimeout() time.Duration { return s.DrainDelay + s.ShutdownTimeout + leaving }

// Text is the unit.
func (s Systemd) Text(o Origin) (string, error) {
	var c checks
	c.path("binary", s.Binary)
	c.path("config", s.Config)
	c.user("user", s.User)
	if s.Watchdog != 0 {
		c.from("watchdog", s.Watchdog, time.Second)
	}
	c.from("drain-delay", s.DrainDelay, 0)
	c.from("shutdown-timeout", s.ShutdownTimeout, time.Millisecond)
	if c.err != nil {
		return "", c.err
	}
	return text(o, "firn.service", s)
}
