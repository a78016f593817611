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
	Timestamp  string      `json:"timestamp"`
	Lifecycles []lifecycle `json:"lifecycles"`
	Authors    []named     `json:"authors"`
	Component  component   `json:"component"`
}

type lifecycle struct {
	Phase string `json:"phase"`
}

type named struct {
	Name string `json:"name"`
}

type component struct {
	Type       string          `json:"type"`
	Ref        string          `json:"bom-ref"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Scope      string          `json:"scope,omitempty"`
	Hashes     []hash          `json:"hashes,omitempty"`
	Licenses   []licenceChoice `json:"licenses"`
	URL        string          `json:"purl"`
	Properties []property      `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licenceChoice struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// billOf is the bill of a binary that is linked from modules.
func billOf(modules []module, path, version string, at time.Time, binary [sha256.Size]byte) bill {
	whole := component{
		Type: "application", Name: "firn", Version: version, Licenses: choices([]string{"Apache-2.0"}), URL: packageURL(path, version),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(binary[:])}},
	}
	whole.Ref = whole.URL
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1, Serial: serial(binary),
		Metadata: metadata{at.Format(time.RFC3339), []lifecycle{{"post-build"}}, []named{{"The firn authors"}}, whole},
	}
	needs := dependency{Ref: whole.Ref}
	for _, m := range modules {
		c := component{Type: "library", Name: m.path, Version: m.version, Scope: "required", Licenses: choices(identifiers(m.licences)), URL: packageURL(m.path, m.version)}
		c.Ref = c.URL
		if m.sum != "" {
			c.Properties = []property{{"go.sum", m.sum}}
		}
		b.Components = append(b.Components, c)
		needs.DependsOn = append(needs.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{needs}
	return b
}

func packageURL(path, version string) string { return "pkg:golang/" + path + "@" + version }

// serial is a UUID, of version 8, that follows from the binary.
func serial(binary [sha256.Size]byte) string {
	u := binary[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func choices(ids []string) []licenceChoice {
	all := make([]licenceChoice, len(ids))
	for i, id := range ids {
		all[i].License.ID = id
	}
	return all
}
