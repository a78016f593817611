// Package databases holds programs that keep IDs of firn in a database, one for each way to talk to it, and the test that
// runs them. See docs/databases.md.
package databases
