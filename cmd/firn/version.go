package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/spf13/cobra"
)

// version is what a binary is built from. Whichever of the fields is unknown is empty.
type version struct {
	Version  string `json:"version"`            // such as v0.1.0, or (devel)
	Revision string `json:"revision,omitempty"` // of the source; at least 12 digits
	Time     string `json:"time,omitempty"`     // of that revision
	Modified bool   `json:"modified,omitempty"` // the source was not that revision's
	// checksum of the module, as go.sum has it, if go install took that from a proxy
	Module   string `json:"module,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// What a released binary is built from: go build -ldflags "-X main.release=v0.1.0 -X main.revision=... -X
// main.revised=...".
var release, revision, revised string

func readVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return versionOf(info, version{Version: release, Revision: revision, Time: revised})
}

// pseudoVersion matches the version that the go command gives to a revision without a tag: it ends with the revision's
// time and its first 12 digits (https://go.dev/ref/mod#pseudo-versions).
var pseudoVersion = regexp.MustCompile(`[-.]([0-9]{14})-([0-9a-f]{12})(\+dirty)?$`)

// versionOf completes what the linker was told with what the go command wrote into the binary: in a clone the revision;
// for go install of a version its name and checksum.
func versionOf(info *debug.BuildInfo, told version) version {
	v := version{Version: info.Main.Version, Module: info.Main.Sum}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if match := pseudoVersion.FindStringSubmatch(v.Version); match != nil && v.Revision == "" {
		if at, err := time.Parse("20060102150405", match[1]); err == nil {
			v.Revision, v.Time = match[2], at.Format(time.RFC3339)
		}
	}
	if told.Version != "" {
		v = told
	}
	v.Version = cmp.Or(v.Version, "(unknown)")
	v.Go, v.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	return v
}

func (v version) String() string {
	text := "firn " + v.Version
	switch {
	case v.Revision != "":
		text += fmt.Sprintf(", revision %.12s of %s", v.Revision, v.Time)
	case v.Module != "":
		text += ", module " + v.Module
	}
	if v.Modified {
		text += ", modified"
	}
	return fmt.Sprintf("%s, %s, %s", text, v.Go, v.Platform)
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the version, the revision of the source with its time, and the Go that
built it. A binary that go install built from a tagged version does not know its
revision, which is the tag's: it prints the checksum of the module, as go.sum has it.`,
		Example: `  firn version
  firn version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(p.stdout).Encode(readVersion())
			}
			return p.printf("%v\n", readVersion())
		},
	}
	setting.Bool(c.Flags(), &asJSON, "json", "print a JSON object")
	return c
}

// build is what metrics and traces say of this program.
func build() metrics.Build {
	v := readVersion()
	return metrics.Build{Version: v.Version, Revision: v.Revision, Go: v.Go}
}
