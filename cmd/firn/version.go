package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/firn-id/firn/internal/server/metrics"
	"github.com/firn-id/firn/internal/setting"
	"github.com/spf13/cobra"
)

// version is what the Go tools wrote into the binary.
type version struct {
	Version  string `json:"version"`            // such as v0.1.0, or (devel)
	Revision string `json:"revision,omitempty"` // of the source, where it was known
	Time     string `json:"time,omitempty"`     // of that revision
	Modified bool   `json:"modified,omitempty"` // the source was not that revision's
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// release is the version of a binary that was built for a package: go build -ldflags "-X main.release=v0.1.0".
var release string

func readVersion() version {
	v := version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	v.Version = cmp.Or(release, v.Version)
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
	return v
}

func (v version) String() string {
	text := "firn " + v.Version
	if v.Revision != "" {
		text += fmt.Sprintf(", revision %.12s of %s", v.Revision, v.Time)
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
		Long:  `Version prints the version, the revision of the source and the Go that built it.`,
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
