package deploy

// Docker is a Dockerfile that makes an image of a firn that was built before. It is from scratch: there is no other image
// in it that could change, and whose digest would have to be known.
type Docker struct{}

// Text is the Dockerfile.
func (d Docker) Text(o Origin) (string, error) { return text(o, "Dockerfile", d) }
