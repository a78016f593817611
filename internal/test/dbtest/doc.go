// Package dbtest runs real database servers for tests: each on a Unix socket in a folder of its own, with data that is
// gone afterwards, as a user without rights. It runs on Linux alone. It is not for production code.
package dbtest
