package cluster

import (
	"cmp"
	"iter"
)

// tree is an immutable ordered map: put and without return another one that shares most of its nodes. The zero
// value is empty. It is a weight-balanced tree with the parameters of Hirai and Yamamoto, "Balancing
// weight-balanced trees" (2011), so that finding the entry at an index takes as long as finding a key. Entries
// can be marked; marked ones also have indexes of their own.
type tree[K cmp.Ordered, V any] struct{ root *node[K, V] }

type node[K cmp.Ordered, V any] struct {
	item[K, V]
	size, marks int32 // of the subtree
	left, right *node[K, V]
}

type item[K cmp.Ordered, V any] struct {
	key    K
	value  V
	marked bool
}

func (t tree[K, V]) len() int { return t.root.len() }

// marked returns how many entries are marked.
func (t tree[K, V]) marked() int { return t.root.marked() }

func (t tree[K, V]) get(key K) (value V, ok bool) {
	for n := t.root; n != nil; {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.value, true
		}
	}
	return value, false
}

func (t tree[K, V]) has(key K) bool {
	_, ok := t.get(key)
	return ok
}

// at returns the entry at an index of 0 to len-1.
func (t tree[K, V]) at(index int) (K, V) {
	n := t.root
	for {
		left := n.left.len()
		switch {
		case index < left:
			n = n.left
		case index > left:
			n, index = n.right, index-left-1
		default:
			return n.key, n.value
		}
	}
}

// atMarked returns the entry at an index of 0 to marked-1 among the marked ones.
func (t tree[K, V]) atMarked(index int) (K, V) {
	n := t.root
	for {
		left := n.left.marked()
		switch {
		case index < left:
			n = n.left
		case index == left && n.item.marked:
			return n.key, n.value
		default:
			if index -= left; n.item.marked {
				index--
			}
			n = n.right
		}
	}
}

// all yields the entries in the order of their keys.
func (t tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.walk(yield) }
}

// keys yields the keys of a tree in their order.
func keys[K cmp.Ordered, V any](t tree[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		t.root.walk(func(key K, _ V) bool { return yield(key) })
	}
}

// values yields the values of a tree in the order of their keys.
func values[K cmp.Ordered, V any](t tree[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		t.root.walk(func(_ K, value V) bool { return yield(value) })
	}
}

// floor returns the entry with the greatest key at or below this one.
func (t tree[K, V]) floor(key K) (at K, value V, ok bool) {
	for n := t.root; n != nil; {
		if key < n.key {
			n = n.left
			continue
		}
		at, value, ok = n.key, n.value, true
		n = n.right
	}
	return at, value, ok
}

// ceiling returns the entry with the least key at or above this one.
func (t tree[K, V]) ceiling(key K) (at K, value V, ok bool) {
	for n := t.root; n != nil; {
		if key > n.key {
			n = n.right
			continue
		}
		at, value, ok = n.key, n.value, true
		n = n.left
	}
	return at, value, ok
}

// put returns the tree with this value at the key, not marked.
func (t tree[K, V]) put(key K, value V) tree[K, V] { return t.putMarked(key, value, false) }

// putMarked returns the tree with this value at the key, marked or not.
func (t tree[K, V]) putMarked(key K, value V, marked bool) tree[K, V] {
	return tree[K, V]{t.root.put(item[K, V]{key, value, marked})}
}

// mark returns the tree with the entry of the key, which must be there, marked or not.
func (t tree[K, V]) mark(key K, marked bool) tree[K, V] {
	return tree[K, V]{t.root.mark(key, marked)}
}

// without returns the tree without the key, which may be absent.
func (t tree[K, V]) without(key K) tree[K, V] {
	if !t.has(key) {
		return t
	}
	return tree[K, V]{t.root.without(key)}
}

func (n *node[K, V]) len() int {
	if n == nil {
		return 0
	}
	return int(n.size)
}

func (n *node[K, V]) marked() int {
	if n == nil {
		return 0
	}
	return int(n.marks)
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.value) && n.right.walk(yield)
}

func (n *node[K, V]) put(e item[K, V]) *node[K, V] {
	switch {
	case n == nil:
		return join(e, nil, nil)
	case e.key < n.key:
		left := n.left.put(e)
		if left.len() == n.left.len() { // the key was there
			return join(n.item, left, n.right)
		}
		return balance(n.item, left, n.right)
	case e.key > n.key:
		right := n.right.put(e)
		if right.len() == n.right.len() {
			return join(n.item, n.left, right)
		}
		return balance(n.item, n.left, right)
	default:
		return join(e, n.left, n.right)
	}
}

func (n *node[K, V]) mark(key K, marked bool) *node[K, V] {
	left, right, e := n.left, n.right, n.item
	switch {
	case key < n.key:
		left = left.mark(key, marked)
	case key > n.key:
		right = right.mark(key, marked)
	default:
		e.marked = marked
	}
	if left == n.left && right == n.right && e.marked == n.item.marked {
		return n
	}
	return join(e, left, right)
}

func (n *node[K, V]) without(key K) *node[K, V] {
	switch {
	case key < n.key:
		return balance(n.item, n.left.without(key), n.right)
	case key > n.key:
		return balance(n.item, n.left, n.right.without(key))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	default:
		next := n.right
		for next.left != nil {
			next = next.left
		}
		return balance(next.item, n.left, n.right.without(next.key))
	}
}

// A tree is balanced when neither side weighs more than three times the other, where a side's weight is its size
// plus one. A rotation lightens a side that has become heavier: a double rotation if its inner half weighs at
// least twice its outer half.
const (
	heavier = 3
	inner   = 2
)

func (n *node[K, V]) weight() int { return n.len() + 1 }

func join[K cmp.Ordered, V any](e item[K, V], left, right *node[K, V]) *node[K, V] {
	marks := left.marked() + right.marked()
	if e.marked {
		marks++
	}
	return &node[K, V]{e, int32(left.len() + right.len() + 1), int32(marks), left, right}
}

// balance joins two sides after one of them has grown or shrunk by one entry.
func balance[K cmp.Ordered, V any](e item[K, V], l, r *node[K, V]) *node[K, V] {
	switch {
	case r.weight() > heavier*l.weight():
		if m := r.left; m.weight() >= inner*r.right.weight() {
			return join(m.item, join(e, l, m.left), join(r.item, m.right, r.right))
		}
		return join(r.item, join(e, l, r.left), r.right)
	case l.weight() > heavier*r.weight():
		if m := l.right; m.weight() >= inner*l.left.weight() {
			return join(m.item, join(l.item, l.left, m.left), join(e, m.right, r))
		}
		return join(l.item, l.left, join(e, l.right, r))
	default:
		return join(e, l, r)
	}
}
