package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/codes"
)

// answer is that of a call for IDs of past times.
type answer struct {
	IDs     idList    `json:"ids"`
	Node    int64     `json:"node"`
	Reached time.Time `json:"reached"`
}

// idList is a list of IDs as texts. encoding/json would take a third of the time of an import.
type idList []firn.ID

func (l *idList) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	*l = (*l)[:0]
	for rest := text; ; {
		from := 0
		for from < len(rest) && rest[from] != '"' {
			if c := rest[from]; c >= '0' && c <= '9' || c == '{' || c == 't' || c == 'f' || c == 'n' {
				return fmt.Errorf("the IDs are %.40q; want a list of texts", text)
			}
			from++
		}
		if from == len(rest) {
			return nil
		}
		id, at := int64(0), from+1
		for ; at < len(rest) && rest[at] >= '0' && rest[at] <= '9'; at++ {
			digit := int64(rest[at] - '0')
			if id > (1<<63-1-digit)/10 {
				return fmt.Errorf("an ID is %.30q; want one up to %d", rest[from:], firn.MaxID)
			}
			id = id*10 + digit
		}
		if at == from+1 || at == len(rest) || rest[at] != '"' {
			return fmt.Errorf("an ID is %.30q; want digits", rest[from:])
		}
		*l, rest = append(*l, firn.ID(id)), rest[at+1:]
	}
}

// call asks for the IDs of the ticks, or none. It repeats the call, with the same key, until the server answers, or
// refuses it, or did neither for longer than the patience.
func (i *Import) call(ctx context.Context, key string, ticks []int64, end bool) (a answer, err error) {
	body := i.body(key, ticks, end)
	pause := retry.Backoff{First: i.pause, Max: 20 * i.pause}
	began := time.Now()
	for failures := 0; ; failures++ {
		a.IDs = i.ids[:0]
		_, err = i.Client.Call(ctx, http.MethodPost, remote.SequencerPath(i.Sequencer, "/past"), body, &a)
		i.ids = a.IDs
		switch {
		case err == nil && len(a.IDs) != len(ticks):
			return a, fmt.Errorf("the server %s gives %d IDs, not %d", i.Client.Base, len(a.IDs), len(ticks))
		case err == nil || ctx.Err() != nil || !i.opened || !mayPass(err) || time.Since(began) > i.Patience:
			return a, err
		}
		if failures == 0 && i.Warn != nil {
			i.Warn(fmt.Errorf("%w; trying again for %v", err, i.Patience))
		}
		if retry.Sleep(ctx, pause.After(failures)) != nil {
			return a, err
		}
	}
}

// mayPass reports whether the same call may succeed later.
func mayPass(err error) bool {
	refused, ok := errors.AsType[*remote.AnswerError](err)
	if !ok {
		return true // no answer, or a part of one
	}
	code := refused.Failure.Error.Code
	return code.Retry() > 0 || code == codes.RateLimited || code == "" && refused.Passing()
}

// body is that of a call.
func (i *Import) body(key string, ticks []int64, end bool) []byte {
	job, err := json.Marshal(i.Job)
	if err != nil {
		panic(err) // it is a text
	}
	b := append(i.sent[:0], `{"job":`...)
	b = append(b, job...)
	if key != "" {
		b = strconv.AppendQuote(append(b, `,"key":`...), key)
	}
	if i.Next {
		b = append(b, `,"if_full":"next"`...)
	}
	if end {
		b = append(b, `,"end":true`...)
	} else if i.progress.given > 0 { // so that a store that was set back is noticed
		b = append(strconv.AppendInt(append(b, `,"after":"`...), int64(i.progress.last), 10), '"')
	}
	b = append(b, `,"times":[`...)
	for n, tick := range ticks {
		if n > 0 {
			b = append(b, ',')
		}
		b = i.layout.TickStart(tick).AppendFormat(append(b, '"'), time.RFC3339Nano)
		b = append(b, '"')
	}
	i.sent = append(b, "]}"...)
	return i.sent
}
