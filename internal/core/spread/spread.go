// Package spread spreads callers over several of something, such as generators, so that those that run at the same time
// do not write to the same cache lines.
package spread

// Pick returns a number from 0 to n-1, and 0 where n is less than 2. Goroutines that run at the same time get different
// ones, as far as n allows; one goroutine mostly gets the same again. It is safe for concurrent use.
func Pick(n int) int {
	if n < 2 {
		return 0
	}
	p := processor()
	if p >= n { // a division costs half as much as an ID
		p %= n
	}
	return p
}
