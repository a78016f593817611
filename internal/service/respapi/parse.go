package respapi

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	maxCommand = 16 << 10 // bytes of a command, with all that frames it
	maxArgs    = 1024
)

// protocolError is returned for anything that is not a command. What follows it can't be parsed.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// Errors in the words of Redis, where it has them.
const (
	errCount    = protocolError("invalid multibulk length")
	errLength   = protocolError("invalid bulk length")
	errLineEnd  = protocolError("expected '\\r\\n' after an argument")
	errQuotes   = protocolError("unbalanced quotes in request")
	errInline   = protocolError("too big inline request")
	errTooLarge = protocolError("too big request")
)

// parse finds the command at the beginning of b: it appends its arguments, slices of b, to args, and returns its size
// in bytes. Size 0 without an error: the command is not complete, and has less than maxCommand bytes so far. Blank
// lines and empty arrays are commands without arguments. An inline command is changed in place, so parse it only once.
func parse(b []byte, args [][]byte) (all [][]byte, size int, err error) {
	if len(b) == 0 {
		return args, 0, nil
	}
	large := errInline
	if b[0] == '*' {
		all, size, err = parseArray(b, args)
		large = errTooLarge
	} else {
		all, size, err = parseInline(b, args)
	}
	if err == nil && (size > maxCommand || size == 0 && len(b) >= maxCommand) {
		return args, 0, large
	}
	return all, size, err
}

// parseArray reads *2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n.
func parseArray(b []byte, args [][]byte) ([][]byte, int, error) {
	count, size, ok := parseLength(b[1:])
	if !ok || count > maxArgs {
		return args, 0, errCount
	}
	if size == 0 {
		return args, 0, nil
	}
	at := 1 + size
	for range count { // none, if it is negative, as in Redis
		if at == len(b) {
			return args, 0, nil
		}
		if b[at] != '$' {
			return args, 0, protocolError(fmt.Sprintf("expected '$', got %q", b[at]))
		}
		length, size, ok := parseLength(b[at+1:])
		if !ok || length < 0 || length > maxCommand {
			return args, 0, errLength
		}
		if size == 0 {
			return args, 0, nil
		}
		from := at + 1 + size
		to := from + length
		at = to + 2
		if at > maxCommand {
			return args, 0, errTooLarge
		}
		if to < len(b) && b[to] != '\r' || to+1 < len(b) && b[to+1] != '\n' {
			return args, 0, errLineEnd
		}
		if at > len(b) {
			return args, 0, nil
		}
		args = append(args, b[from:to:to])
	}
	return args, at, nil
}

// parseLength reads a number and the end of its line. Size 0: it is not complete. Not ok: not a number, or far too
// large.
func parseLength(b []byte) (n, size int, ok bool) {
	const digits = 9 // more are too large whatever they say
	from := 0
	if len(b) > 0 && b[0] == '-' {
		from = 1
	}
	for i := from; i < len(b); i++ {
		switch c := b[i]; {
		case '0' <= c && c <= '9' && i-from < digits:
			n = 10*n + int(c-'0')
		case c != '\r' || i == from || i+1 < len(b) && b[i+1] != '\n':
			return 0, 0, false
		case i+1 == len(b):
			return 0, 0, true
		default:
			if from == 1 {
				n = -n
			}
			return n, i + 2, true
		}
	}
	return 0, 0, true
}

// parseInline reads a line of words, as people type them. Words can be quoted, as in redis-cli.
func parseInline(b []byte, args [][]byte) ([][]byte, int, error) {
	end := bytes.IndexByte(b[:min(len(b), maxCommand)], '\n')
	if end < 0 {
		return args, 0, nil
	}
	for line := b[:end]; ; {
		line = bytes.TrimLeft(line, blanks)
		if len(line) == 0 {
			return args, end + 1, nil
		}
		if len(args) == maxArgs {
			return args, 0, errInline
		}
		word, rest, ok := parseWord(line)
		if !ok {
			return args, 0, errQuotes
		}
		args, line = append(args, word), rest
	}
}

const blanks = " \t\r\v\f\x00"

// parseWord reads the first word of a line. It unquotes the word in place, since that never makes it longer.
func parseWord(line []byte) (word, rest []byte, ok bool) {
	word = line[:0]
	quote := byte(0) // the one that is open
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && bytes.IndexByte([]byte(blanks), c) >= 0:
			return word, line[i:], true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			if i+1 < len(line) && bytes.IndexByte([]byte(blanks), line[i+1]) < 0 {
				return nil, nil, false // a word can't go on after its quotes
			}
			return word, line[i+1:], true
		case quote != 0 && c == '\\':
			char, size := unescape(quote, line[i:])
			word = append(word, char)
			i += size - 1
		default:
			word = append(word, c)
		}
	}
	return word, nil, quote == 0
}

// unescape reads the character for which a backslash and what follows it stand within quotes, and its size in the text.
func unescape(quote byte, text []byte) (char byte, size int) {
	if len(text) < 2 || quote == '\'' && text[1] != '\'' {
		return text[0], 1
	}
	if text[1] == 'x' && len(text) >= 4 {
		var code [1]byte
		if _, err := hex.Decode(code[:], text[2:4]); err == nil {
			return code[0], 4
		}
	}
	if i := strings.IndexByte("nrtba", text[1]); i >= 0 {
		return "\n\r\t\b\a"[i], 2
	}
	return text[1], 2
}
