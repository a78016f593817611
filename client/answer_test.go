package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn"
)

func TestParseAnswer(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"id":9007199254740993,"id_str":"9007199254740993"}`, "[9007199254740993]"},
		{`{"id":1,"id_str":"9223372036854775807"}` + "\n", "[9223372036854775807]"},
		{`{"ids":[0,0],"ids_str":["9007199254740993","9007199254740995"]}`, "[9007199254740993 9007199254740995]"},
		{`{"ids_str":["5"]}`, "[5]"},
		{`{"ids":[5,6]}`, "0 IDs; want 2"},
		{`{"ids_str":["5"],"id_str":"6"}`, "2 IDs; want 1"},
		{`{"ids_str":["5","6","7"]}`, "3 IDs; want 2"},
		{`{"ids_str":["6","5"]}`, "5 comes after 6"},
		{`{"ids_str":["5","5"]}`, "5 comes after 5"},
		{`{"ids_str":["0","5"]}`, "0 comes after 0"},
		{`{"ids_str":["-5","5"]}`, "-"},
		{`{"ids_str":["5","1e3"]}`, "1e3"},
		{`{"ids_str":["5","6"]} and more`, "invalid character"},
		{``, "unexpected end"},
	} {
		n := 2
		if strings.Count(c.want, " ") == 0 && c.want[0] == '[' || strings.HasSuffix(c.want, "want 1") {
			n = 1
		}
		ids, err := parseAnswer([]byte(c.body), n)
		if got := fmt.Sprint(ids); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v; want %s", c.body, got, err, c.want)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	r := answer(503, "")
	e := readError("a", r, []byte(`{"error":{"code":"x","message":"`+strings.Repeat("ü", 2000)+`"}}`))
	if len(e.Message) > longestText+3 || !strings.HasSuffix(e.Message, "ü...") {
		t.Errorf("%d bytes: %s", len(e.Message), e.Message)
	}
}

// Whatever a node answers, either it is refused or there are as many IDs as were asked for, above zero, in ascending order.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"id":9007199254740993,"id_str":"9007199254740993"}`), uint8(1))
	f.Add([]byte(`{"ids":[5,6],"ids_str":["5","6"]}`), uint8(2))
	f.Add([]byte(`{"ids_str":["5","6"],"ids_str":[null,"6"]}`), uint8(2))
	f.Add([]byte(`{"error":{"code":"not_ready","message":""}}`), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		ids, err := parseAnswer(body, int(n))
		if err != nil {
			return
		}
		last := firn.ID(0)
		for _, id := range ids {
			if id <= last {
				t.Errorf("%d after %d", id, last)
			}
			if !strings.Contains(string(body), id.String()) {
				t.Errorf("%d is not in the answer", id)
			}
			last = id
		}
		if len(ids) != int(n) {
			t.Errorf("%d IDs, want %d", len(ids), n)
		}
		_ = readError("a", answer(503, ""), body).Error()
	})
}
