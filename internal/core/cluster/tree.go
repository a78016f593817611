package cluster

import (
	"cmp"
	"iter"
)

// tree is an immutable ordered map: put and without return another one that shares most of its nodes. The zero
// value is empty. It is a weight-balanced tree with the parameters of Hirai and Yamamoto, "Balancing
// weight-balanced trees" (2011), so that finding the entry at an index takes as long as finding a key. Entries
// can be marked; marked ones also have indexes of their own.
type tree[K cmp.Ordered, V any] struct {
	root *node[K, V]
	edit *edit
}

// edit identifies a series of changes to a tree. Nobody holds the trees between them, so it changes the nodes that it
// has made in place. Nil: every change makes new nodes. Clojure's transients do the same.
type edit struct{ _ byte } // of which no two have the same address

type node[K cmp.Ordered, V any] struct {
	item[K, V]
	size, marks int32 // of the subtree
	left, right *node[K, V]
	edit        *edit // that has made it
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
		case key == n.key: // costs less than another order
			return n.value, true
		default:
			n = n.right
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

// index returns how many keys are below this one, which is its index if the tree has it.
func (t tree[K, V]) index(key K) (below int) {
	for n := t.root; n != nil; {
		if key <= n.key {
			n = n.left
			continue
		}
		below += n.left.len() + 1
		n = n.right
	}
	return below
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
	t.root = t.root.put(t.edit, item[K, V]{key, value, marked})
	return t
}

// mark returns the tree with the entry of the key, which must be there, marked or not.
func (t tree[K, V]) mark(key K, marked bool) tree[K, V] {
	t.root = t.root.mark(t.edit, key, marked)
	return t
}

// without returns the tree without the key, which may be absent.
func (t tree[K, V]) without(key K) tree[K, V] {
	if t.has(key) {
		t.root = t.root.without(t.edit, key)
	}
	return t
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

func (n *node[K, V]) put(by *edit, e item[K, V]) *node[K, V] {
	switch {
	case n == nil:
		return join(by, e, nil, nil)
	case e.key < n.key:
		size := n.left.len()
		left := n.left.put(by, e)
		if left.len() == size { // the key was there
			return n.with(by, n.item, left, n.right)
		}
		return n.balance(by, n.item, left, n.right)
	case e.key == n.key:
		return n.with(by, e, n.left, n.right)
	default:
		size := n.right.len()
		right := n.right.put(by, e)
		if right.len() == size {
			return n.with(by, n.item, n.left, right)
		}
		return n.balance(by, n.item, n.left, right)
	}
}

func (n *node[K, V]) mark(by *edit, key K, marked bool) *node[K, V] {
	switch {
	case key < n.key:
		return n.with(by, n.item, n.left.mark(by, key, marked), n.right)
	case key == n.key:
		return n.with(by, item[K, V]{key, n.value, marked}, n.left, n.right)
	default:
		return n.with(by, n.item, n.left, n.right.mark(by, key, marked))
	}
}

func (n *node[K, V]) without(by *edit, key K) *node[K, V] {
	switch {
	case key < n.key:
		return n.balance(by, n.item, n.left.without(by, key), n.right)
	case key > n.key:
		return n.balance(by, n.item, n.left, n.right.without(by, key))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	default:
		next := n.right
		for next.left != nil {
			next = next.left
		}
		e := next.item
		return n.balance(by, e, n.left, n.right.without(by, e.key))
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

// join returns a new node.
func join[K cmp.Ordered, V any](by *edit, e item[K, V], left, right *node[K, V]) *node[K, V] {
	return (&node[K, V]{edit: by}).set(e, left, right)
}

// with returns the node with these contents: itself, if the edit has made it, or a new one.
func (n *node[K, V]) with(by *edit, e item[K, V], left, right *node[K, V]) *node[K, V] {
	if by == nil || n.edit != by {
		return join(by, e, left, right)
	}
	return n.set(e, left, right)
}

func (n *node[K, V]) set(e item[K, V], left, right *node[K, V]) *node[K, V] {
	n.item, n.left, n.right = e, left, right
	n.size = int32(left.len() + right.len() + 1)
	n.marks = int32(left.marked() + right.marked())
	if e.marked {
		n.marks++
	}
	return n
}

// balance is with, after one of the sides has grown or shrunk by one entry.
func (n *node[K, V]) balance(by *edit, e item[K, V], l, r *node[K, V]) *node[K, V] {
	switch {
	case r.weight() > heavier*l.weight():
		if m := r.left; m.weight() >= inner*r.right.weight() {
			return join(by, m.item, join(by, e, l, m.left), join(by, r.item, m.right, r.right))
		}
		return join(by, r.item, join(by, e, l, r.left), r.right)
	case l.weight() > heavier*r.weight():
		if m := l.right; m.weight() >= inner*l.left.weight() {
			return join(by, m.item, join(by, l.item, l.left, m.left), join(by, e, m.right, r))
		}
		return join(by, l.item, l.left, join(by, e, l.right, r))
	default:
		return n.with(by, e, l, r)
	}
}
