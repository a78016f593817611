package deploy

import (
	"fmt"
	"regexp"
)

// Compose is a file for docker compose, with nodes on one machine that are a quorum, or that use a store.
type Compose struct {
	Image  string // of firn, as firn gen docker has it built
	Store  Store  // that others keep; zero: the nodes are a quorum
	Quorum int64  // how many nodes: 1, 3 or 5; with Store any number up to 100

	StorePassword bool  // whether ./store-password has the password of the user of Store
	Port          int64 // of this machine, for the HTTP of the first node; the others have the next ones
}

// NewCompose is what firn gen compose prints without flags.
func NewCompose() Compose { return Compose{Image: "firn", Quorum: 3, Port: 8081} }

// ComposeNode is one of the services.
type ComposeNode struct {
	Name string // of the service, the host and the volume
	Port int64  // of this machine, for HTTP
}

// Nodes are the services.
func (d Compose) Nodes() (all []ComposeNode) {
	for i := range d.Quorum {
		all = append(all, ComposeNode{fmt.Sprintf("firn-%d", i+1), d.Port + i})
	}
	return all
}

// Machines are the addresses of the quorum.
func (d Compose) Machines() (all []string) {
	for _, n := range d.Nodes() {
		all = append(all, fmt.Sprintf("%s:%d", n.Name, quorumPort))
	}
	return all
}

// StopTimeout is how many seconds stopping may take.
func (Compose) StopTimeout() float64 { return defaultStopping.StopTimeout() }

var anyImage = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/:@-]{0,399}$`)

// Text is the file.
func (d Compose) Text(o Origin) (string, error) {
	var c checks
	c.that(anyImage.MatchString(d.Image), "image",
		"%.80q names no image; want one such as firn, or registry.example.com/firn:1.0", d.Image)
	c.store(d.Store)
	c.that(d.Store.Address != "" || !d.StorePassword, "store-password",
		"there is a password for a store, and no store; want --store with its address")
	if d.Store.Address == "" {
		c.quorum(d.Quorum)
	}
	c.number("quorum", d.Quorum, 1, 100)
	c.number("port", d.Port, 1, 65536-d.Quorum)
	return c.text(o, "compose.yaml", d)
}
