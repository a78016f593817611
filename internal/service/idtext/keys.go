package idtext

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/fresh"
)

const maxVersion = math.MaxUint16

// errNoKeys is why a node seals and opens nothing.
var errNoKeys = errors.New("this node has no keys to seal and open IDs; start it with --seal-key-file, see firn " +
	"seal-key")

// Keys seal and open IDs. The first one seals, all of them open: a new one can be handed out to all nodes before any
// seals with it. They do not change.
type Keys struct {
	versions []uint16                // in the order of the file
	sealers  map[uint16]*firn.Sealer // by version
}

// OpenKeys reads a file of keys, see ParseKeys, and returns what has its keys at any time: the file is read again
// within a second of use after it has changed. If it is then missing or wrong, that is logged, and the keys stay as
// they were.
func OpenKeys(path string, log *slog.Logger) (func() *Keys, error) {
	v, err := files.Open("keys that seal IDs", log, func(contents [][]byte, _ *Keys) (*Keys, error) {
		keys, err := ParseKeys(contents[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return keys, nil
	}, path)
	if err != nil {
		return nil, err
	}
	return v.Get, nil
}

// ParseKeys reads keys, each on a line: its version, 1 to 65535, and 16, 24 or 32 bytes in base64. Empty lines, and
// those that begin with #, do not count. An error names the line, and never shows a key. No key at all is an error.
//
//	1 bGV0IG1lIHRlbGwgeW91IGEgc2VjcmV0IHRoYXQgaXM=
func ParseKeys(data []byte) (*Keys, error) {
	const want = "want a version from 1 to 65535, a space and a key in base64, as firn seal-key prints them"
	keys := &Keys{sealers: map[uint16]*firn.Sealer{}}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		fields := strings.Fields(string(line))
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: it has %d words; %s", n, len(fields), want)
		}
		version, err := strconv.ParseUint(fields[0], 10, 16)
		if err != nil || version == 0 {
			return nil, fmt.Errorf("line %d: it does not begin with a version; %s", n, want)
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: the key is not base64; %s", n, want)
		}
		sealer, err := firn.NewSealer(secret)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if keys.sealers[uint16(version)] != nil {
			return nil, fmt.Errorf("line %d: there is another key of version %d; want each once", n, version)
		}
		keys.sealers[uint16(version)] = sealer
		keys.versions = append(keys.versions, uint16(version))
	}
	if len(keys.versions) == 0 {
		return nil, errors.New("no keys; want at least one, as firn seal-key prints it")
	}
	return keys, nil
}

// NewKey returns the line of a new key whose version follows the greatest one of keys; nil: 1. An error is returned
// when keys has the last version.
func NewKey(keys *Keys) (string, error) {
	version := 1
	if keys != nil {
		version = int(slices.Max(keys.versions)) + 1
	}
	if version > maxVersion {
		return "", fmt.Errorf("there is a key of version %d already, the last one", maxVersion)
	}
	secret := fresh.Bytes()
	return fmt.Sprintf("%d %s\n", version, base64.StdEncoding.EncodeToString(secret[:])), nil
}

// appendSealed returns what seals IDs of a sequencer.
func (k *Keys) appendSealed(sequencer string) Append {
	version := k.versions[0]
	sealer := k.sealers[version].WithTweak([]byte(sequencer))
	return func(b []byte, id firn.ID) ([]byte, error) {
		b = append(strconv.AppendUint(b, uint64(version), 10), '-')
		return firn.Base62.Append(b, sealer.Seal(id)), nil
	}
}

// open opens a sealed ID of a sequencer.
func (k *Keys) open(sequencer string, version uint16, sealed firn.ID) (firn.ID, error) {
	sealer := k.sealers[version]
	if sealer == nil {
		all := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(k.versions), "[]")), ", ")
		return 0, fmt.Errorf("it is sealed with a key of version %d, which this node does not have; it has %s",
			version, all)
	}
	return sealer.WithTweak([]byte(sequencer)).Open(sealed), nil
}
