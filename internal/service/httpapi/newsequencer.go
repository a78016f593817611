package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
)

// maxBody is how long the body of a call may be.
const maxBody = 64 << 10

// NewSequencer describes a sequencer to create. In JSON its name is beside the fields of the definition; absent fields
// have the defaults of cluster.Definition.
type NewSequencer struct {
	Name       string
	Definition cluster.Definition
	Reserve    int64 // so many node IDs for later; see cluster.Later
}

// MarshalJSON writes every field, and reserve unless it is 0.
func (n NewSequencer) MarshalJSON() ([]byte, error) {
	definition, err := json.Marshal(n.Definition)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(definition, &fields); err != nil {
		return nil, err
	}
	if fields["name"], err = json.Marshal(n.Name); err != nil {
		return nil, err
	}
	if n.Reserve != 0 {
		fields["reserve"] = json.RawMessage(strconv.FormatInt(n.Reserve, 10))
	}
	return json.Marshal(fields)
}

// UnmarshalJSON reads a JSON object. An error is returned when it has an unknown field, or when the name or the
// definition is not valid.
func (n *NewSequencer) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if fields == nil {
		return errors.New("null; want an object")
	}
	name, ok := fields["name"]
	if !ok {
		return errors.New(`no name; want a field such as "name":"orders"`)
	}
	n.Name = ""
	if err := json.Unmarshal(name, &n.Name); err != nil {
		return fmt.Errorf("name is %.40s; want a string", name)
	}
	if err := cluster.CheckName(n.Name); err != nil {
		return err
	}
	n.Reserve = 0
	if reserve, ok := fields["reserve"]; ok && json.Unmarshal(reserve, &n.Reserve) != nil {
		return fmt.Errorf("reserve is %.40s; want a number from 0 to %d", reserve, cluster.MaxReserved)
	}
	delete(fields, "name")
	delete(fields, "reserve")
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(rest, &n.Definition)
}

// readNew reads the body of a call to create a sequencer. An *http.MaxBytesError is returned when it is too long.
func readNew(w http.ResponseWriter, r *http.Request) (NewSequencer, error) {
	var n NewSequencer
	data, err := io.ReadAll(http.MaxBytesReader(within(w), r.Body, maxBody))
	if err != nil {
		return n, fmt.Errorf("reading the body: %w", err)
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return n, errors.New(`the body is empty; want JSON such as {"name":"orders","nodes":128}`)
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("the body: %w",
			readable(err, "name, kind, nodes, allocation, layout, epoch, tick, time_bits, datacenter_bits, node_bits, "+
				"sequence_bits, node_lowest, order, after, max, dated, digits, zone, attach, window, prefix, "+
				"scattered, random_start or reserve"))
	}
	return n, nil
}

// readable words an error of encoding/json for people who don't write Go. The object may have these fields.
func readable(err error, fields string) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not one JSON object: %w, at byte %d", syntax, syntax.Offset)
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := mistyped.Field
		if what == "" {
			what = "it"
		}
		return fmt.Errorf("%s is a JSON %s; want %s", what, mistyped.Value, wanted(mistyped.Type))
	}
	if at, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Errorf("epoch is %.40s; want a time such as 2026-01-01T00:00:00Z", strings.Trim(at.Value, `"`))
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s; want %s", field, fields)
	}
	return err
}

// wanted names a Go type in the words of JSON.
func wanted(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()):
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return "a whole number"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
}
