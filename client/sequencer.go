package client

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// anyForm is the text of an ID. A UUID may be in braces or behind urn:uuid:, and a byte order mark in front of all.
var anyForm = regexp.MustCompile(`^\x{feff}?[\w{}:-]+$`)

// Sequencer takes IDs of one sequencer. It is safe for concurrent use. Client.Sequencer returns one; the zero value
// does not work.
type Sequencer struct {
	client *Client
	name   string // empty: the default one
	path   string // of its calls
	stock  *stock // nil without WithPrefetch

	mu     sync.Mutex // guards what follows
	routes []*route   // one for each node
	turn   int        // which route was taken last
	paces  [paces]pace
	seen   firn.ID // the greatest ID that a node gave; zero: none
	seenAt *route  // that node
}

func newSequencer(c *Client, name string) *Sequencer {
	s := &Sequencer{client: c, name: name, path: "/api/v1"}
	if name != "" {
		s.path += "/sequencers/" + url.PathEscape(name)
	}
	for i, node := range c.nodes {
		s.routes = append(s.routes, &route{index: i, node: node})
	}
	if c.config.ahead {
		s.stock = newStock(s, c.config.count, c.config.maxAge)
	}
	return s
}

// Next returns an ID.
//
// It waits until ctx ends, or for DefaultTimeout when ctx has no deadline. An *[Error] is returned as soon as a node
// refuses for a reason that the caller must fix: a wrong token (401, 403), an unknown sequencer (404), a counter that
// is used up or has stopped (409, exhausted or lost), more IDs than a limit allows (429, with RetryAfter), or a layout
// whose time has run out (503 lifetime). A *[MixedError] is returned when a node of another cluster answers.
// [ErrNoAnswer] is returned when ctx ends first, and [ErrClosed] after Close.
func (s *Sequencer) Next(ctx context.Context) (firn.ID, error) {
	if s.stock != nil && s.client.config.hooks.Call == nil && ctx.Err() == nil {
		if id, ok := s.stock.next(); ok {
			return id, nil
		}
	}
	var ids [1]firn.ID
	err := s.Fill(ctx, ids[:])
	return ids[0], err
}

// Fill fills ids, in ascending order, or, where the sequencer scatters its IDs, in that in which they were made. For
// each 100000 it sends one request, one after the other; for none it does nothing.
//
// Its time and its errors are those of Next. In case of an error, ids is unchanged.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error {
	return s.call(ctx, len(ids), func(ctx context.Context) (age time.Duration, err error) {
		if s.stock != nil && len(ids) <= s.stock.count {
			return s.stock.take(ctx, ids)
		}
		b, err := s.askAll(ctx, query{n: len(ids)})
		copy(ids, b.ids)
		return time.Since(b.asked), err
	})
}

// Texts returns the texts of n new IDs in a form: "decimal", "hex", "base32", "base58", "base62" or "checked", which
// the client makes itself, or another one that the nodes know, such as "prefixed", "prefixed-decimal", "uuid" or
// "sealed", which are not prefetched.
// For each 100000 it sends one request, one after the other; for none it does nothing.
//
// Its time and its errors are those of Next. The *Error with the code bad_request is returned for a form that the nodes
// do not know, or that the sequencer does not have. A negative n is an error, too.
func (s *Sequencer) Texts(ctx context.Context, form string, n int) (texts []string, err error) {
	if n < 0 {
		return nil, fmt.Errorf("texts of %d IDs; want 0 or more", n)
	}
	if e, err := firn.EncodingByName(form); err == nil {
		ids := make([]firn.ID, n)
		if err := s.Fill(ctx, ids); err != nil {
			return nil, err
		}
		for _, id := range ids {
			texts = append(texts, e.Encode(id))
		}
		return texts, nil
	}
	err = s.call(ctx, n, func(ctx context.Context) (age time.Duration, err error) {
		b, err := s.askAll(ctx, query{n: n, form: form})
		texts = b.texts
		return time.Since(b.asked), err
	})
	return texts, err
}

// Convert has a node write an ID in another form. The ID is a text in any form, such as "117465411174400005", which the
// form "sealed" seals, or a sealed one, which "decimal" opens; see Texts for the forms.
//
// Its time and its errors are those of Next. The *Error with the code bad_request is returned for a text that is no ID,
// or an ID in several forms (see ConvertFrom), and for a form that the nodes do not know or that the sequencer does not
// have; that with forbidden unless the token may open sealed IDs. A text that no ID has, such as a floating-point
// number, and an empty form, are errors, too.
func (s *Sequencer) Convert(ctx context.Context, id, form string) (text string, err error) {
	return s.ConvertFrom(ctx, "", id, form)
}

// ConvertFrom is Convert for a text whose form is known: of all texts it reads only those in the form as.
func (s *Sequencer) ConvertFrom(ctx context.Context, as, id, form string) (text string, err error) {
	if _, err := firn.Parse(id); err != nil && strings.Contains(id, ".") {
		return "", err // it says what is wrong with a floating-point number
	}
	if !anyForm.MatchString(id) || form == "" {
		return "", fmt.Errorf("the conversion of %q to the form %q; want an ID in any form, and a form", id, form)
	}
	err = s.call(ctx, 1, func(ctx context.Context) (age time.Duration, err error) {
		b, err := s.ask(ctx, query{n: 1, form: form, text: id, as: as})
		if err == nil {
			text = b.texts[0]
		}
		return 0, err
	})
	return text, err
}

// call calls f, for n IDs, within the time that there is. It does nothing for none. f returns the age of the oldest ID.
func (s *Sequencer) call(ctx context.Context, n int, f func(context.Context) (age time.Duration, err error)) error {
	if err := s.client.enter(); err != nil {
		return err
	}
	defer s.client.leave()
	if n == 0 {
		return nil
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	began := time.Now()
	age, err := f(ctx)
	if err != nil {
		age = 0
	}
	s.client.config.hooks.call(Call{s.name, n, time.Since(began), age, err})
	return err
}

// askAll is ask for any number of IDs or texts. In case of an error there are none.
func (s *Sequencer) askAll(ctx context.Context, q query) (batch, error) {
	left := q.n
	q.n = min(left, maxCount)
	all, err := s.ask(ctx, q)
	if err != nil || left <= maxCount {
		return all, err
	}
	for left -= maxCount; left > 0; left -= maxCount {
		q.n = min(left, maxCount)
		b, err := s.ask(ctx, q)
		if err != nil {
			return batch{}, err
		}
		all.ids, all.texts = append(all.ids, b.ids...), append(all.texts, b.texts...)
	}
	slices.Sort(all.ids) // they may be from several nodes
	return all, nil
}

func (s *Sequencer) drop() {
	if s.stock != nil {
		s.stock.drop()
	}
}
