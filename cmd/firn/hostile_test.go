package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/quorum"
)

// Whatever a server answers, it is printed or refused.
func FuzzPrintedAnswer(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"at":"2026-01-02T03:04:05Z","members":[{"id":"a","state":"member","sequencers":[{}],"addresses":null}],` +
			`"joins":[{}],"sequencers":[{"name":"ids"}],"problems":[{}]}`,
		`{"name":"ids","definition":{"layout":"63-0-0"},"members":[{}],"weights":{"":-1}}`,
		`{"cluster":"c","self":"a:1","machines":[{"address":"a:1","role":"voter","error":"\u001b]"}],"record":[""]}`,
		`{"at":"0001-01-01T00:00:00Z","position":-1,"store":{"as_of":"9999-12-31T23:59:59Z"},` +
			`"sequencers":[{"window":-1,"node_ids":-1,"members":[{"node_ids":[-1]}]}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
		var status calls.Status
		if json.Unmarshal(text, &status) == nil {
			_ = p.statusText(status, false, true)
			_ = p.statusText(status, true, true)
		}
		var s calls.StatusSequencer
		if json.Unmarshal(text, &s) == nil {
			_ = sequencerText(s)
		}
		var policy calls.Policy
		if json.Unmarshal(text, &policy) == nil {
			_ = policyText(policy)
		}
		var q quorum.Status
		if json.Unmarshal(text, &q) == nil {
			_ = p.quorumText(q)
		}
	})
}
