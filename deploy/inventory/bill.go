package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// bill is a software bill of materials, as CycloneDX 1.6 has it.
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp  string    `json:"timestamp"`
	Lifecycles []object  `json:"lifecycles"`
	Authors    []object  `json:"authors"`
	Component  component `json:"component"`
}

type component struct {
	Type       string              `json:"type"`
	Ref        string              `json:"bom-ref"`
	Name       string              `json:"name"`
	Version    string              `json:"version"`
	Scope      string              `json:"scope,omitempty"`
	Hashes     []object            `json:"hashes,omitempty"`
	Licenses   []map[string]object `json:"licenses"`
	URL        string              `json:"purl"`
	Properties []object            `json:"properties,omitempty"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// object is one whose fields are all texts.
type object map[string]string

// billOf is the bill of a binary that is linked from modules.
func billOf(modules []module, path, version string, at time.Time, binary [sha256.Size]byte) bill {
	whole := componentOf("application", path, version, []string{"Apache-2.0"})
	whole.Name = "firn"
	whole.Hashes = []object{{"alg": "SHA-256", "content": hex.EncodeToString(binary[:])}}
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1, Serial: serial(binary),
		Metadata: metadata{
			at.Format(time.RFC3339),
			[]object{{"phase": "post-build"}},
			[]object{{"name": "The firn authors"}},
			whole,
		},
	}
	needs := dependency{Ref: whole.Ref}
	for _, m := range modules {
		c := componentOf("library", m.path, m.version, identifiers(m.licences))
		c.Scope = "required"
		if m.sum != "" {
			c.Properties = []object{{"name": "go.sum", "value": m.sum}}
		}
		b.Components = append(b.Components, c)
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{needs}
	return b
}

// componentOf is a Go module, with the identifiers of its licences.
func componentOf(kind, path, version string, licences []string) component {
	url := "pkg:golang/" + path + "@" + version
	c := component{Type: kind, Ref: url, Name: path, Version: version, URL: url}
	for _, id := range licences {
		c.Licenses = append(c.Licenses, map[string]object{"license": {"id": id}})
	}
	return c
}

// serial is a UUID, of version 8, that follows from the binary.
func serial(binary [sha256.Size]byte) string {
	u := binary[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
