// Package models holds the test that runs spin on the models in the folder proofs, and keeps them, the docs and the Go code
// together. It is not for the models themselves, nor for the proofs beside them: those have package proofs.
package models
