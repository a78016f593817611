// Package formal is the folder of the proofs, which Coq checks, and the models, which spin explores. Its tests run
// both, and hold them, the docs and the Go code together: what one of them names is in the others.
package formal
