package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

// Each way to get firn tells what it was built from.
func TestVersionOf(t *testing.T) {
	const revision = "663a986f0e1d2c3b4a5968778695a4b3c2d1e0f9"
	clone := []debug.BuildSetting{
		{Key: "vcs", Value: "git"},
		{Key: "vcs.revision", Value: revision},
		{Key: "vcs.time", Value: "2026-11-23T04:17:00Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	for _, tt := range []struct {
		way  string
		main debug.Module
		with []debug.BuildSetting
		told version
		want string
	}{
		{"a package", debug.Module{Version: "(devel)"}, nil, version{
			Version: "v0.1.0", Revision: revision,
			Time: "2026-11-23T04:17:00Z",
		}, "firn v0.1.0, revision 663a986f0e1d of 2026-11-23T04:17:00Z, go"},
		{
			"a package, built where the go command knows more",
			debug.Module{Version: "v0.0.0-20261123041700-663a986f0e1d+dirty"},
			clone,
			version{Version: "v0.1.0", Revision: revision, Time: "2026-11-22T00:00:00Z"},
			"firn v0.1.0, revision 663a986f0e1d of 2026-11-22T00:00:00Z, go",
		},
		{
			"go install of a tag",
			debug.Module{Version: "v0.1.0", Sum: "h1:5NBkmd8MXirajj6AAEpi4HFVJnVkBNPTL1ggYAKqaws="},
			nil,
			version{},
			"firn v0.1.0, module h1:5NBkmd8MXirajj6AAEpi4HFVJnVkBNPTL1ggYAKqaws=, go",
		},
		{
			"go install of a revision",
			debug.Module{Version: "v0.0.0-20261123041700-663a986f0e1d", Sum: "h1:abc="},
			nil,
			version{},
			"firn v0.0.0-20261123041700-663a986f0e1d, revision 663a986f0e1d of 2026-11-23T04:17:00Z, go",
		},
		{
			"go install of a revision after a tag",
			debug.Module{Version: "v0.1.1-0.20261123041700-663a986f0e1d", Sum: "h1:abc="},
			nil,
			version{},
			"firn v0.1.1-0.20261123041700-663a986f0e1d, revision 663a986f0e1d of 2026-11-23T04:17:00Z, go",
		},
		{
			"go build in a clone",
			debug.Module{Version: "v0.0.0-20261123041700-663a986f0e1d+dirty"},
			clone,
			version{},
			"firn v0.0.0-20261123041700-663a986f0e1d+dirty, revision 663a986f0e1d of 2026-11-23T04:17:00Z, " +
				"modified, go",
		},
		{"go build of files", debug.Module{Version: "(devel)"}, nil, version{}, "firn (devel), go"},
		{"a build that tells nothing", debug.Module{}, nil, version{}, "firn (unknown), go"},
	} {
		got := versionOf(&debug.BuildInfo{Main: tt.main, Settings: tt.with}, tt.told).String()
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.way, got, tt.want)
		}
	}
}
