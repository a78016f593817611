package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/firn-id/firn/store/internal/answers"
)

// receive reads answers and events until the connection ends.
func (c *Conn) receive() {
	from := bufio.NewReader(c.conn)
	for {
		if err := c.next(from); err != nil {
			c.end(err)
			return
		}
	}
}

// next reads one answer or event. It takes no memory for more than the request has room for.
func (c *Conn) next(from io.Reader) error {
	n, err := readLength(from)
	if err != nil {
		return err
	}
	var header [headerSize]byte
	if n < headerSize {
		return fmt.Errorf("the server answers %d bytes; want at least %d", n, headerSize)
	}
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return err
	}
	in := reader{buf: header[:]}
	xid, zxid, code := in.int(), in.long(), Code(in.int())
	most, left, err := c.room(xid)
	if err != nil {
		return err
	}
	body, err := readBytes(from, n-headerSize, most)
	if err != nil {
		return err
	}
	if left != nil {
		*left -= len(body)
	}
	return c.handle(xid, zxid, code, &reader{buf: body})
}

// allowance is how many bytes the answers to requests may have together.
func allowance(requests []Request) int {
	if len(requests) > 0 && requests[0].code == codeSASL {
		return maxLogin
	}
	return answers.Max
}

// room is how many bytes an answer may have, or an event.
func (c *Conn) room(xid int32) (most int, left *int, err error) {
	if xid == xidEvent || xid == xidPing {
		return maxEvent, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.waiting[xid] // it waits until all of its answer is here
	if call == nil {
		return 0, nil, fmt.Errorf("the server answers a request %d that was not sent", xid)
	}
	return *call.left, call.left, nil
}

func (c *Conn) handle(xid int32, zxid int64, code Code, in *reader) error {
	switch xid {
	case xidEvent:
		in.take(8) // its type, and the state
		if path := in.string(); in.err == nil && c.options.Event != nil {
			c.options.Event(path)
		}
		return in.err
	case xidPing:
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.pings) > 0 {
			c.hear(c.pings[0])
			c.pings = c.pings[1:]
		}
		return nil
	}
	c.mu.Lock()
	call := c.waiting[xid]
	delete(c.waiting, xid)
	if call != nil {
		c.hear(call.sent)
	}
	c.mu.Unlock()
	if call == nil { // the connection has ended meanwhile
		return errClosed
	}
	call.reply = Reply{Zxid: zxid, Err: code}
	if code == 0 {
		call.request.decode(in, &call.reply)
	}
	if in.err != nil {
		call.fail(in.err)
		return in.err
	}
	close(call.answered)
	return nil
}

// hear notes that a request was answered that was sent then.
func (c *Conn) hear(sent time.Time) {
	if sent.After(c.heard) {
		c.heard = sent
	}
}

// readLength reads how long the next frame is.
func readLength(from io.Reader) (int64, error) {
	var length [4]byte
	_, err := io.ReadFull(from, length[:])
	return int64(binary.BigEndian.Uint32(length[:])), err
}

// readBytes reads n bytes, if they are no more than that, and takes memory as they come.
func readBytes(from io.Reader, n int64, most int) (all []byte, err error) {
	const atOnce = 64 << 10
	if n > int64(most) {
		return nil, fmt.Errorf("the server answers %d bytes; want at most %d", n, most)
	}
	for len(all) < int(n) && err == nil {
		more := min(int(n)-len(all), max(len(all), atOnce))
		all = append(all, make([]byte, more)...)
		_, err = io.ReadFull(from, all[len(all)-more:])
	}
	return all, err
}
