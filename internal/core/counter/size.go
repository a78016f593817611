package counter

import (
	"cmp"
	"time"
)

// Pace is for how long blocks are to last. The zero value stands for the defaults.
type Pace struct {
	Least, Most time.Duration // 10 s and 60 s
	Largest     int64         // how many numbers a block has at most: 2^32
}

// What a Pace is unless it says otherwise.
const (
	DefaultLeast   = 10 * time.Second
	DefaultMost    = 60 * time.Second
	defaultLargest = 1 << 32
)

// growth is how many times larger than the block before a block is at most, so that a short burst does not lead to one
// that lasts for hours.
const growth = 16

// Size returns how many numbers the next block is to have, where the one before had so many, and so many were given in
// this time. If a block of that size would last as long as the pace says, it stays. First, with a size of 0, it is 1.
func (p Pace) Size(now, given int64, in time.Duration) int64 {
	least, most := cmp.Or(p.Least, DefaultLeast), cmp.Or(p.Most, DefaultMost)
	if now < 1 || given < 1 {
		return 1
	}
	perSecond := float64(given) / max(in, 1).Seconds()
	if lasts := float64(now) / perSecond; lasts >= least.Seconds() && lasts <= most.Seconds() {
		return now
	}
	size := perSecond * (least + most).Seconds() / 2
	size = min(size, growth*float64(now), float64(cmp.Or(p.Largest, defaultLargest)))
	return max(int64(size), 1)
}
