package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// redisConnection asks over the Redis protocol. A client library would make the program half as large again, for
// three commands.
type redisConnection struct {
	network, address string
	sequencer, token string
	tls              *tls.Config
	server           string
	clusters         *Clusters

	conn net.Conn // nil: closed
	in   *bufio.Reader
	out  []byte
}

func dialRedis(u *url.URL, a Access) (Connection, error) {
	name := a.Sequencer
	if name == "" {
		name = "default"
	}
	c := &redisConnection{
		network: "tcp", address: u.Host, sequencer: name, token: a.Token, tls: a.TLS.Clone(),
		server: u.String(), clusters: a.Clusters,
	}
	if u.Scheme == "unix" {
		c.network, c.address = "unix", u.Path
	}
	if c.tls != nil && c.tls.ServerName == "" {
		c.tls.ServerName = u.Hostname()
	}
	return c, nil
}

func (c *redisConnection) Close() {
	if c.conn != nil {
		_ = c.conn.Close() // no call is in progress
		c.conn = nil
	}
}

func (c *redisConnection) Take(ctx context.Context, ids []firn.ID) error {
	err := c.take(ctx, ids)
	var refused *CodeError
	if err != nil && !errors.As(err, &refused) {
		c.Close() // the answer may still come
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (c *redisConnection) take(ctx context.Context, ids []firn.ID) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer interrupt()
	command := []string{"INCR", c.sequencer}
	if len(ids) > 1 {
		command = []string{"FIRN.NEXT", c.sequencer, strconv.Itoa(len(ids))}
	}
	if err := c.send(command...); err != nil {
		return err
	}
	if len(ids) > 1 {
		switch n, err := c.number('*'); {
		case err != nil:
			return err
		case n != int64(len(ids)):
			return badAnswer("the server sent %d IDs; want %d", n, len(ids))
		}
	}
	for i := range ids {
		id, err := c.number(':')
		if err != nil {
			return err
		}
		ids[i] = firn.ID(id)
	}
	return nil
}

// open connects, and sends the token.
func (c *redisConnection) open(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	dialer := &net.Dialer{Timeout: connectWithin}
	var conn net.Conn
	var err error
	if c.tls == nil {
		conn, err = dialer.DialContext(ctx, c.network, c.address)
	} else {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: c.tls}).DialContext(ctx, c.network, c.address)
	}
	if err != nil {
		return err
	}
	c.conn, c.in = conn, bufio.NewReaderSize(conn, 32<<10)
	interrupt := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer interrupt()
	if err := c.greet(); err != nil {
		c.Close()
		return err
	}
	return nil
}

// greet sends the token, and asks of which cluster the server is: once for each connection.
func (c *redisConnection) greet() error {
	if c.token != "" {
		if err := c.send("AUTH", c.token); err != nil {
			return err
		}
		if _, err := c.line('+'); err != nil {
			return err
		}
	}
	if c.clusters == nil {
		return nil
	}
	if err := c.send("INFO", "firn"); err != nil {
		return err
	}
	size, err := c.number('$')
	if err != nil {
		return err
	}
	info, err := io.ReadAll(io.LimitReader(c.in, size+2))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(info), "\ncluster:")
	cluster, _, _ := strings.Cut(rest, "\r\n")
	return c.clusters.take(c.server, cluster)
}

// send sends a command.
func (c *redisConnection) send(words ...string) error {
	c.out = fmt.Appendf(c.out[:0], "*%d\r\n", len(words))
	for _, w := range words {
		c.out = fmt.Appendf(c.out, "$%d\r\n%s\r\n", len(w), w)
	}
	_, err := c.conn.Write(c.out)
	return err
}

// line reads a line of a kind. It returns an error line as a *CodeError.
func (c *redisConnection) line(kind byte) (string, error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", badAnswer("the server sent a line of more than %d bytes", c.in.Size())
	}
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(line), "\r\n")
	switch {
	case text != "" && text[0] == kind:
		return text[1:], nil
	case text != "" && text[0] == '-':
		word, message, _ := strings.Cut(text[1:], " ")
		return "", &CodeError{word, message}
	default:
		return "", badAnswer("the server sent %.40q; want a line that begins with %q", text, kind)
	}
}

func (c *redisConnection) number(kind byte) (int64, error) {
	text, err := c.line(kind)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badAnswer("the server sent %.40q; want an ID or their number", text)
	}
	return n, nil
}
