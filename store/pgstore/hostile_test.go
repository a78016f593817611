package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

// hostile is a server that answers as a script of bytes says: as PostgreSQL would, or not. It knows nothing.
type hostile struct {
	mu       sync.Mutex
	script   []byte
	over     context.CancelFunc // of the script
	revision int
	dialed   int
}

func (h *hostile) next() byte {
	if len(h.script) == 0 {
		h.over()
		return 0
	}
	b := h.script[0]
	h.script = h.script[1:]
	return b
}

func (h *hostile) dial(context.Context, string, string) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dialed++; h.dialed > 3 {
		h.over()
		return nil, errors.New("refused")
	}
	client, server := net.Pipe()
	go h.serve(server)
	return client, nil
}

func (h *hostile) serve(conn net.Conn) {
	defer conn.Close()
	backend := pgproto3.NewBackend(conn, conn)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	answer := h.spoil(encode(login...))
	for {
		if _, err := conn.Write(append(answer, encode(&pgproto3.ReadyForQuery{TxStatus: 'I'})...)); err != nil {
			return
		}
		request, err := backend.Receive()
		if err != nil {
			return
		}
		query, ok := request.(*pgproto3.Query)
		if !ok {
			return
		}
		answer = nil
		h.mu.Lock()
		for sql := range strings.SplitSeq(query.String, "\n;") {
			answer = append(answer, h.answer(strings.TrimSpace(sql))...)
		}
		h.mu.Unlock()
	}
}

// login is what a server says first.
var login = []pgproto3.BackendMessage{
	&pgproto3.AuthenticationOk{},
	&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"},
	&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"},
	&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}},
}

func encode(messages ...pgproto3.BackendMessage) (all []byte) {
	for _, m := range messages {
		all, _ = m.Encode(all)
	}
	return all
}

// spoil changes bytes on their way, or not.
func (h *hostile) spoil(all []byte) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch how := h.next(); how {
	case 1: // one byte is another
		all[int(h.next())%len(all)] ^= h.next()
	case 2: // the end is missing
		all = all[:int(h.next())%len(all)]
	case 3: // a message of any kind and length
		all = append(all, h.next(), h.next(), h.next(), h.next(), h.next())
	}
	return all
}

const identity = "00000000-0000-0000-0000-000000000001"

// honest are the columns and the rows that answer a statement, with a space between columns; "-" is null, "." is empty.
func (h *hostile) honest(sql string) (columns string, rows []string) {
	for _, known := range []struct{ begins, columns, row string }{
		{"SELECT current_setting('server_version_num')", "number standby pid breaks missing head", "150000 f 1 . - t"},
		{"SELECT current_setting('server_version')", "version standby synchronous connections maxconns", "15 f . 1 1"},
		{"SELECT format FROM head", "format", "2"},
		{
			"SELECT coalesce(revision", "revision identity origin actual floor emptied",
			strconv.Itoa(h.revision) + " " + identity + " o o - .",
		},
		{"SELECT revision, identity", "revision identity", strconv.Itoa(h.revision) + " " + identity},
		{"SELECT version, position, CASE", "version position value continues", `1 0 \x31 t`},
		{"SELECT version, position FROM checkpoint", "version position", "1 0"},
		{"SELECT (SELECT max(position)", "entry checkpoint breaks", "- 0 ."},
		{"SELECT (extract(epoch", "now wrong", "1000 f"},
		{"SELECT (SELECT coalesce(max(extract", "oldest", "0"},
		{"SELECT (SELECT sum(pg_total", "size missing oldest who dead", "1 - 0 x -"},
		{"SELECT key, created", "key created", `\x61 5`},
		{"SELECT id FROM sessions", "id", "101"},
		{"SELECT position FROM log WHERE id", "position", "101"},
	} {
		if strings.HasPrefix(sql, known.begins) {
			return known.columns, []string{known.row}
		}
	}
	switch {
	case strings.HasPrefix(sql, "UPDATE latest"):
		h.revision++
		return "revision identity verdict checkpoint trimmed",
			[]string{strconv.Itoa(h.revision) + " " + identity + " 0 1 0"}
	case strings.HasPrefix(sql, "SELECT key, value, version"):
		return "key value version", []string{`\x61 \x31 5`, `\x62 \x31 6`}[:1+h.next()%2]
	case strings.HasPrefix(sql, "SELECT position, id, data"):
		return "position id data", []string{`3 entry-1 \x31`, `4 entry-2 \x31`}[:h.next()%3]
	}
	return "", nil
}

// fields describes columns, of which these are the first values.
func fields(columns, row string) (all []pgproto3.FieldDescription) {
	values := strings.Fields(row)
	for i, name := range strings.Fields(columns) {
		f := pgproto3.FieldDescription{Name: []byte(name), DataTypeOID: pgtype.TextOID}
		if _, err := strconv.Atoi(values[i]); err == nil {
			f.DataTypeOID = pgtype.Int8OID
		} else if values[i] == "t" || values[i] == "f" {
			f.DataTypeOID = pgtype.BoolOID
		} else if values[i][0] == '\\' {
			f.DataTypeOID = pgtype.ByteaOID
		}
		all = append(all, f)
	}
	return all
}

// answer answers a statement, or does what is wrong.
func (h *hostile) answer(sql string) []byte {
	how := h.next()
	columns, rows := h.honest(sql)
	switch how {
	case 4: // no rows
		rows = nil
	case 5: // one too many
		rows = append(rows, rows...)
	case 6: // no answer
		return nil
	case 7: // two
		return append(encode(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")}),
			encode(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")})...)
	case 8: // an error
		code := []string{"42P01", "40001", "28000", "", "XX000"}[h.next()%5]
		return encode(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code})
	case 9: // rows without a description
		return encode(&pgproto3.DataRow{Values: [][]byte{[]byte("1")}})
	case 10:
		return encode(&pgproto3.RowDescription{}, &pgproto3.RowDescription{}, &pgproto3.CopyInResponse{},
			&pgproto3.EmptyQueryResponse{})
	}
	var all []byte
	if len(rows) > 0 {
		all = encode(&pgproto3.RowDescription{Fields: fields(columns, rows[0])})
	}
	for _, row := range rows {
		all = append(all, encode(&pgproto3.DataRow{Values: h.values(how, row)})...)
	}
	all = append(all, encode(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})...)
	if how == 11 {
		h.mu.Unlock()
		all = h.spoil(all)
		h.mu.Lock()
	}
	return all
}

func (h *hostile) values(how byte, row string) (values [][]byte) {
	for text := range strings.FieldsSeq(row) {
		switch text {
		case "-":
			values = append(values, nil)
		case ".":
			values = append(values, []byte{})
		default:
			values = append(values, []byte(text))
		}
	}
	at := 0
	if 12 <= how && how <= 15 {
		at = int(h.next()) % len(values)
	}
	switch how {
	case 12: // a column is missing
		values = values[:at]
	case 13: // there is one more
		values = append(values, values[at])
	case 14: // a value is null
		values[at] = nil
	case 15: // it is another
		values[at] = []byte([]string{
			"", "-1", "9223372036854775807", "9223372036854775808", "x", `\x`, `\x3`, "t",
			"'; --",
		}[h.next()%9])
	}
	return values
}

// use calls what the bits say.
func use(ctx context.Context, s *pgstore.Store, which byte) {
	var session store.Session
	if which&1 != 0 {
		session, _ = s.OpenSession(ctx, 5*time.Second)
	}
	if which&2 != 0 {
		_, _ = s.Get(ctx, "a")
		_, _ = s.List(ctx, "")
	}
	if which&4 != 0 {
		op := store.Put("a", []byte("1"))
		if session != nil {
			op = store.PutEphemeral("a", []byte("1"), session)
		}
		_, _ = s.Commit(ctx, store.Txn{If: []store.Condition{{Key: "b"}}, Then: []store.Op{op, store.Delete("c")}})
	}
	if which&8 != 0 {
		_, _ = s.Append(ctx, "entry", []byte("1"))
	}
	if which&16 != 0 {
		_, _ = s.Read(ctx, 0)
		_, _ = s.Examine(ctx)
	}
	if which&32 != 0 {
		_ = s.Checkpoint(ctx, store.Checkpoint{Position: 2, Value: []byte("1")})
		_ = s.Trim(ctx)
	}
	if which&64 != 0 {
		_, _ = s.Gone(ctx, "a")
	}
	if which&128 != 0 {
		for _, err := range s.Follow(ctx, 0) {
			if err != nil {
				break
			}
		}
	}
	if session != nil {
		_ = session.Close(ctx)
	}
}

var nowhere = pgstore.Config{URL: "postgres://firn@127.0.0.1:1/firn?sslmode=disable"}

// Whatever a server answers, calls end, with an error where it is wrong.
func FuzzHostileServer(f *testing.F) {
	for bit := range 8 {
		f.Add([]byte{1 << bit}, make([]byte, 64))
	}
	for at := range 64 { // one byte of what a server answers in order
		for how := byte(at % 2); how < 16; how += 2 {
			script := make([]byte, 200)
			script[at] = how
			f.Add([]byte{0x7f}, script)
		}
	}
	f.Fuzz(func(t *testing.T, which, script []byte) {
		if len(which) == 0 || len(script) > 1<<8 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := &hostile{script: script, over: cancel, revision: 100}
			s, err := pgstore.OpenOver(nowhere, h.dial)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range which[:min(len(which), 2)] {
				use(ctx, s, w)
			}
			_ = s.Close()
		})
	})
}

// What a server says that it will send takes no memory, and what it sends without end is not kept.
func TestLengthOfAnswers(t *testing.T) {
	ready := slices.Clip(append(encode(login...), encode(&pgproto3.ReadyForQuery{TxStatus: 'I'})...))
	row := encode(&pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, 1)})
	for name, c := range map[string]struct {
		first, forever []byte
		want           string
	}{
		"1 GiB before the login": {first: []byte{'R', 0x3f, 255, 255, 255}, want: "invalid body length"},
		"parameters before the login": {forever: encode(&pgproto3.ParameterStatus{
			Name:  "a",
			Value: strings.Repeat("b", 1000),
		}), want: "more than it was asked for"},
		"1 GiB after the login": {first: append(ready, 'T', 0x3f, 255, 255, 255), want: "closed"},
		"rows": {
			first: append(ready, row...), forever: encode(&pgproto3.DataRow{Values: [][]byte{make([]byte, 1000)}}),
			want: "the server",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var sent atomic.Int64
			var once sync.Once
			s, err := pgstore.OpenOver(nowhere, func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				refused := true
				once.Do(func() {
					refused = false
					go func() {
						defer server.Close()
						startup := make([]byte, 1<<10)
						_, _ = server.Read(startup)
						go func() {
							_, _ = server.Write(c.first)
							many := bytes.Repeat(c.forever, 100)
							for len(many) > 0 && sent.Load() < 1<<30 {
								n, err := server.Write(many)
								if sent.Add(int64(n)); err != nil {
									return
								}
							}
						}()
						_, _ = io.Copy(io.Discard, server)
					}()
				})
				if refused {
					return nil, errors.New("refused")
				}
				return client, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(30 * time.Second)
			var why error
			for why == nil || !strings.Contains(why.Error(), c.want) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				if _, err := s.Get(ctx, "a"); err != nil && !strings.Contains(err.Error(), "refused") {
					why = err
					t.Log(err)
				}
				cancel()
				if time.Now().After(deadline) {
					t.Fatalf("%v; want %q", why, c.want)
				}
			}
			_ = s.Close()
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 || sent.Load() > 64<<20 {
				t.Errorf("it allocates %d bytes for %d", grown, sent.Load())
			}
		})
	}
}
