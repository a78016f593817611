package deploy

import "fmt"

// Docker is a Dockerfile that builds firn from its source, as an image with nothing else in it.
type Docker struct {
	Builder string // an image with Go
	Base    string // an image with the certificates of authorities, and not much else
}

// NewDocker is the Dockerfile that the Kubernetes manifests are for.
func NewDocker() Docker {
	return Docker{Builder: "golang:1.26-bookworm", Base: "gcr.io/distroless/static-debian12:nonroot"}
}

// Text is the Dockerfile.
func (d Docker) Text(o Origin) (string, error) {
	var c checks
	c.image("builder", d.Builder)
	c.image("base", d.Base)
	if c.err != nil {
		return "", c.err
	}
	return text(o, "Dockerfile", d)
}

func (c *checks) image(name, text string) {
	if !imageName.MatchString(text) || len(text) > 255 {
		c.that(name, fmt.Errorf("%.80q is no image; want one such as registry.example.com/firn:1.0", text))
	}
}
