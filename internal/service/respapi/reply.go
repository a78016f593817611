package respapi

import (
	"strconv"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// Each of these appends to the replies.

func (c *conn) ok() { c.simple("OK") }

func (c *conn) simple(text string) {
	c.out = append(append(append(c.out, '+'), text...), "\r\n"...)
}

func (c *conn) integer(n int64) {
	c.out = append(strconv.AppendInt(append(c.out, ':'), n, 10), "\r\n"...)
}

// head begins something that has a length.
func (c *conn) head(kind byte, length int) {
	c.out = append(strconv.AppendInt(append(c.out, kind), int64(length), 10), "\r\n"...)
}

func (c *conn) bulk(text string) {
	c.head('$', len(text))
	c.out = append(append(c.out, text...), "\r\n"...)
}

func (c *conn) bulks(texts ...string) {
	for _, text := range texts {
		c.bulk(text)
	}
}

// text is a bulk for people to read.
func (c *conn) text(text string) {
	if !c.resp3 {
		c.bulk(text)
		return
	}
	c.head('=', len("txt:")+len(text))
	c.out = append(append(append(c.out, "txt:"...), text...), "\r\n"...)
}

// array begins an array of so many values.
func (c *conn) array(length int) { c.head('*', length) }

// pairs begins a map of so many keys, each with a value after it.
func (c *conn) pairs(length int) {
	if c.resp3 {
		c.head('%', length)
	} else {
		c.head('*', 2*length)
	}
}

func (c *conn) null() {
	if c.resp3 {
		c.out = append(c.out, "_\r\n"...)
	} else {
		c.out = append(c.out, "$-1\r\n"...)
	}
}

// longest is the maximum size of an error in bytes.
const longest = 1024

// fail is an error. Its word says of what kind it is. Line ends in the text become spaces.
func (c *conn) fail(word, text string) {
	c.code = codeOf(word)
	c.out = append(append(append(c.out, '-'), word...), ' ')
	for _, b := range []byte(text[:min(len(text), longest)]) {
		if b == '\r' || b == '\n' {
			b = ' '
		}
		c.out = append(c.out, b)
	}
	c.out = append(c.out, "\r\n"...)
}

// codeOf is the code of an error that does not come from the service.
func codeOf(word string) codes.Code {
	if word == "NOAUTH" || word == "WRONGPASS" {
		return codes.Unauthenticated
	}
	return codes.BadRequest
}

// origin is where a command comes from.
func (c *conn) origin() calls.Origin {
	return calls.Origin{Protocol: "redis", Remote: c.net.RemoteAddr().String()}
}

// unauthenticated answers a client without a valid token, in the words of Redis. Command is its name in the audit
// trail.
func (c *conn) unauthenticated(word, text, command string) {
	c.s.service.Refuse(c.origin(), command, auth.ErrUnauthenticated)
	c.fail(word, text)
}

// refuse answers a command that the service refuses. Command is its name in the log.
func (c *conn) refuse(command string, err error) {
	if c.s.context.Err() != nil { // because the server is closed
		c.quit, c.code = true, codes.Gone
		return
	}
	code := c.s.service.Refuse(c.origin(), command, err)
	c.fail(code.Redis(), err.Error())
	c.code = code
}
