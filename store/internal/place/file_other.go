//go:build !unix

package place

// identify does nothing: on this system no process keeps data.
func (p *Place) identify(string) error { return nil }
