package firn

// golden is the multiplier of Scatter, and goldenInverse its inverse: their product
// modulo 2^63 is 1.
const (
	golden        uint64 = 5700357409661599243
	goldenInverse uint64 = 2812876173790338467
)

// Scatter rearranges the IDs so that those made one after another lie far apart.
// Use the result as the key in a store that is split into ranges of keys, where
// IDs in the order of their time would all go to the last range. A range of time is
// then no longer a range of keys. Scatter is no encryption: see [Sealer] for that.
//
// It is a bijection of the 63 bits, which [Gather] undoes, and will never change. It
// folds the upper half onto the lower, multiplies modulo 2^63 by the odd number
// nearest to 2^63 / phi, phi being the golden ratio, and repeats both:
//
//	fold      x ^= x >> 32
//	multiply  x *= 5700357409661599243
//	fold, multiply, fold
//
// One multiplication alone (Fibonacci hashing, Knuth, The Art of Computer
// Programming, volume 3, section 6.4) spreads most streams more evenly still, but
// sends three times its share to one of 16 ranges when the IDs of the default
// layout come 374 ms apart, and the like at other distances. Reversing the bits
// puts all keys into one range when IDs are rare, because then the sequence, which
// comes last, is always 0. After two multiplications no distance stands out, and
// the ranges fill as evenly as by chance.
//
// A negative number is not an ID and is returned unchanged. Scatter is safe for
// concurrent use.
func Scatter(id ID) ID { return mix(id, golden) }

// Gather undoes [Scatter]: Gather(Scatter(id)) is id. It is safe for concurrent use.
func Gather(id ID) ID { return mix(id, goldenInverse) }

// mix with the inverse of k undoes mix, because folding by more than half of the bits undoes
// itself, and the steps read the same from either end.
func mix(id ID, k uint64) ID {
	if id < 0 {
		return id
	}
	x := uint64(id)
	x ^= x >> 32
	x = x * k & uint64(MaxID)
	x ^= x >> 32
	x = x * k & uint64(MaxID)
	x ^= x >> 32
	return ID(x)
}
