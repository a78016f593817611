package respapi

import (
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
)

// Each of these appends to the replies.

func (c *conn) ok() { c.simple("OK") }

func (c *conn) simple(text string) {
	c.out = append(append(append(c.out, '+'), text...), "\r\n"...)
}

func (c *conn) integer(n int64) {
	c.out = append(strconv.AppendInt(append(c.out, ':'), n, 10), "\r\n"...)
}

// head is the beginning of something that has a length.
func (c *conn) head(kind byte, length int) {
	c.out = append(strconv.AppendInt(append(c.out, kind), int64(length), 10), "\r\n"...)
}

func (c *conn) bulk(text string) {
	c.head('$', len(text))
	c.out = append(append(c.out, text...), "\r\n"...)
}

// text is a bulk that is for people to read.
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

// longest is how many bytes an error has at most.
const longest = 1024

// fail is an error. Its word says of what kind; text that would end the line is made harmless.
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

// WordOf is the word that errors with a code of the service begin with: Redis' own, or the code without its underscore.
func WordOf(code server.Code) string {
	switch code {
	case server.BadRequest:
		return "ERR"
	case server.Unauthenticated:
		return "NOAUTH"
	case server.Forbidden:
		return "NOPERM"
	default:
		return strings.ToUpper(strings.ReplaceAll(string(code), "_", ""))
	}
}

// codeOf is the kind of an error that the service does not know of.
func codeOf(word string) server.Code {
	if word == "NOAUTH" || word == "WRONGPASS" {
		return server.Unauthenticated
	}
	return server.BadRequest
}

// origin is where the commands come from.
func (c *conn) origin() server.Origin {
	return server.Origin{Protocol: "redis", Remote: c.net.RemoteAddr().String()}
}

// unauthenticated answers who was not let in, in Redis' own words. Command is what it is called in the audit trail.
func (c *conn) unauthenticated(word, text, command string) {
	c.s.service.Refuse(c.origin(), command, auth.ErrUnauthenticated)
	c.fail(word, text)
}

// refuse answers a command that the service has refused. Command is what it is called in the log.
func (c *conn) refuse(command string, err error) {
	if c.s.context.Err() != nil { // it is closed, and that is why
		c.quit, c.code = true, server.Gone
		return
	}
	code := c.s.service.Refuse(c.origin(), command, err)
	c.fail(WordOf(code), err.Error())
	c.code = code
}
