// Package browser holds tests that run in a browser: that the page to try the calls works in one, asks no other site
// for anything, and shows IDs exactly.
package browser
