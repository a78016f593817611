package etcdserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/bits"
)

// The format of a database of bbolt: pages, which hold trees of buckets.
const (
	pageHeader  = 16 // id, flags, count, overflow
	elementSize = 16
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2

	branchPage, leafPage, freelistPage = 1, 2, 16

	bucketFlag = 1
	bucketSize = 16 // root and sequence, in front of what is in a bucket without pages of its own

	noFreelist = math.MaxUint64
	manyInList = 0xFFFF // then the count comes before the list

	deepest    = 64       // levels of a tree
	longestRun = 64 << 20 // bytes that one page takes with those that belong to it
)

// checkPages returns an error unless all pages of a database can be read: bbolt believes what is in them, and reads
// memory that it does not have, or reads without end. entry is called with the bucket of each key, and with the key and
// its value.
func checkPages(file io.ReaderAt, size int64, entry func(bucket string, key, value []byte) error) error {
	p, meta, err := openPages(file, size)
	if err != nil {
		return err
	}
	root := binary.LittleEndian.Uint64(meta[16:])
	err = p.tree(root, 0, new(order), func(flags uint32, key, value []byte) error {
		if flags != bucketFlag {
			return errors.New("there is a key outside of all buckets")
		}
		return p.bucket(value, func(flags uint32, k, v []byte) error {
			if flags != 0 {
				return errors.New("there is a bucket in a bucket")
			}
			return entry(string(key), k, v)
		})
	})
	if err != nil {
		return err
	}
	return p.freelist(binary.LittleEndian.Uint64(meta[32:]))
}

// pages are those of one database.
type pages struct {
	file io.ReaderAt
	size uint64 // of a page
	used []bool // by number; as many as there are
}

// element is what is called for each element of a leaf.
type element func(flags uint32, key, value []byte) error

// order is that of the keys of one tree.
type order struct {
	last   []byte
	inLeaf bool // the last key is of a leaf; else it is the least that the page below it may have
}

// next returns an error unless a key can follow, in a page in front of the pages below it and in order.
func (o *order) next(key []byte, inLeaf bool) error {
	is := bytes.Compare(key, o.last)
	if o.last != nil && (is < 0 || is == 0 && o.inLeaf) {
		return fmt.Errorf("the key %.40q comes after %.40q", key, o.last)
	}
	o.last, o.inLeaf = append([]byte{}, key...), inLeaf
	return nil
}

// openPages finds the page that says what the latest state is, as bbolt does.
func openPages(file io.ReaderAt, size int64) (p *pages, meta []byte, err error) {
	at := func(offset int64) []byte {
		b := make([]byte, pageHeader+metaSize)
		if _, err := file.ReadAt(b, offset); err != nil {
			return nil
		}
		return checkMeta(b[pageHeader:])
	}
	first := at(0)
	pageSize := int64(0)
	if first != nil {
		pageSize = int64(binary.LittleEndian.Uint32(first[8:]))
	}
	for i := 0; first == nil && pageSize == 0 && i < 15; i++ {
		if at(1024<<i) != nil {
			pageSize = 1024 << i
		}
	}
	if pageSize < 1024 || pageSize > 1<<16 || bits.OnesCount64(uint64(pageSize)) != 1 {
		return nil, nil, errors.New("neither of its first two pages says what there is")
	}
	second := at(pageSize)
	meta = first
	if first == nil ||
		second != nil && binary.LittleEndian.Uint64(second[48:]) > binary.LittleEndian.Uint64(first[48:]) {
		meta = second
	}
	for _, m := range [][]byte{first, second} {
		if m != nil && int64(binary.LittleEndian.Uint32(m[8:])) != pageSize {
			return nil, nil, fmt.Errorf("its pages have %d bytes, and %d", pageSize, binary.LittleEndian.Uint32(m[8:]))
		}
	}
	many := binary.LittleEndian.Uint64(meta[40:])
	if there := uint64(size) / uint64(pageSize); many < 2 || many > there {
		return nil, nil, fmt.Errorf("it has %d pages; want at least 2, and %d", there, many)
	}
	return &pages{file: file, size: uint64(pageSize), used: make([]bool, many)}, meta, nil
}

// checkMeta returns what a page says of the database; nil: its checksum is wrong.
func checkMeta(meta []byte) []byte {
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:56]) // never fails
	if binary.LittleEndian.Uint32(meta) != metaMagic || binary.LittleEndian.Uint32(meta[4:]) != metaVersion ||
		binary.LittleEndian.Uint64(meta[56:]) != sum.Sum64() {
		return nil
	}
	return meta
}

// take reads a page with those that belong to it. Each is taken once: there is no way round in a circle.
func (p *pages) take(id uint64) ([]byte, error) {
	if id < 2 || id >= uint64(len(p.used)) {
		return nil, fmt.Errorf("it refers to page %d; want 2 to %d", id, len(p.used)-1)
	}
	header := make([]byte, pageHeader)
	if _, err := p.file.ReadAt(header, int64(id*p.size)); err != nil {
		return nil, err
	}
	run := uint64(binary.LittleEndian.Uint32(header[12:])) + 1
	if is := binary.LittleEndian.Uint64(header); is != id || run > uint64(len(p.used))-id || run*p.size > longestRun {
		return nil, fmt.Errorf("page %d says that it is %d, with %d pages", id, is, run)
	}
	for i := id; i < id+run; i++ {
		if p.used[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		p.used[i] = true
	}
	page := make([]byte, run*p.size)
	_, err := p.file.ReadAt(page, int64(id*p.size))
	return page, err
}

// tree goes over the leaves below a page.
func (p *pages) tree(id uint64, depth int, o *order, each element) error {
	page, err := p.take(id)
	if err != nil {
		return err
	}
	flags, count := binary.LittleEndian.Uint16(page[8:]), binary.LittleEndian.Uint16(page[10:])
	switch {
	case depth > deepest:
		return fmt.Errorf("page %d has more than %d levels above", id, deepest)
	case flags == leafPage && (count > 0 || depth == 0):
		err = leaf(page, o, each)
	case flags == branchPage && count > 0:
		err = p.branch(page, depth, o, each)
	default:
		return fmt.Errorf("page %d is of kind %#x with %d elements; want a page of a tree", id, flags, count)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// branch goes over the pages below a page.
func (p *pages) branch(page []byte, depth int, o *order, each element) error {
	return elements(page, func(at uint64, e []byte) (from, to uint64) {
		from = at + uint64(binary.LittleEndian.Uint32(e))
		return from, from + uint64(binary.LittleEndian.Uint32(e[4:]))
	}, func(e, rest []byte) error {
		if err := o.next(rest[:binary.LittleEndian.Uint32(e[4:])], false); err != nil {
			return err
		}
		return p.tree(binary.LittleEndian.Uint64(e[8:]), depth+1, o, each)
	})
}

// leaf goes over the elements of a leaf.
func leaf(page []byte, o *order, each element) error {
	return elements(page, func(at uint64, e []byte) (from, to uint64) {
		from = at + uint64(binary.LittleEndian.Uint32(e[4:]))
		return from, from + uint64(binary.LittleEndian.Uint32(e[8:]))
	}, func(e, rest []byte) error {
		keySize, valueSize := binary.LittleEndian.Uint32(e[8:]), uint64(binary.LittleEndian.Uint32(e[12:]))
		key, value := rest[:keySize], rest[keySize:]
		if valueSize > uint64(len(value)) {
			return fmt.Errorf("a value has %d bytes, of which %d are there", valueSize, len(value))
		}
		if err := o.next(key, true); err != nil {
			return err
		}
		return each(binary.LittleEndian.Uint32(e), key, value[:valueSize])
	})
}

// elements goes over those of a page in order. keyAt tells where the key of one is; each gets the element, and the page
// from its key on.
func elements(page []byte, keyAt func(at uint64, e []byte) (from, to uint64), each func(e, rest []byte) error) error {
	count := uint64(binary.LittleEndian.Uint16(page[10:]))
	end := pageHeader + count*elementSize
	if end > uint64(len(page)) {
		return fmt.Errorf("%d elements in %d bytes", count, len(page))
	}
	for i := range count {
		at := pageHeader + i*elementSize
		e := page[at : at+elementSize]
		from, to := keyAt(at, e)
		if from < end || to > uint64(len(page)) {
			return fmt.Errorf("the key of element %d is at %d to %d; want %d to %d", i, from, to, end, len(page))
		}
		if err := each(e, page[from:]); err != nil {
			return err
		}
	}
	return nil
}

// bucket goes over what is in a bucket.
func (p *pages) bucket(value []byte, each element) error {
	if len(value) < bucketSize {
		return fmt.Errorf("a bucket has %d bytes; want at least %d", len(value), bucketSize)
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return p.tree(root, 0, new(order), each)
	}
	page := value[bucketSize:]
	if len(page) < pageHeader || binary.LittleEndian.Uint16(page[8:]) != leafPage ||
		binary.LittleEndian.Uint32(page[12:]) != 0 {
		return errors.New("a small bucket has no leaf")
	}
	return leaf(page, new(order), each)
}

// freelist checks that no page is free and used, nor free twice.
func (p *pages) freelist(id uint64) error {
	if id == noFreelist {
		return nil
	}
	page, err := p.take(id)
	if err != nil {
		return err
	}
	count, list := uint64(binary.LittleEndian.Uint16(page[10:])), page[pageHeader:]
	if count == manyInList {
		count, list = binary.LittleEndian.Uint64(list), list[8:]
	}
	if flags := binary.LittleEndian.Uint16(page[8:]); flags != freelistPage || count > uint64(len(list))/8 {
		return fmt.Errorf("page %d is of kind %#x with %d elements; want the list of free pages", id, flags, count)
	}
	for i := range count {
		free := binary.LittleEndian.Uint64(list[8*i:])
		if free < 2 || free >= uint64(len(p.used)) || p.used[free] {
			return fmt.Errorf("page %d is free and used, free twice or not there", free)
		}
		p.used[free] = true
	}
	return nil
}
