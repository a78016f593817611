// Package proofs holds the tests that keep the folder proofs, the docs and the Go code together: Coq accepts the proofs, the
// lemmas that the docs name are in them, and what they name of the code is in the code. It is not for the proofs themselves.
package proofs
