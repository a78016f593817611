// Inventory lists the Go modules that a binary is linked from: in a software bill of materials, as CycloneDX 1.6 in
// JSON, and in a text with the licences of all. It is for packagers, on a machine that has just built the binary:
// licences come from the module cache. The same binary gives the same files.
//
//	inventory BINARY VERSION BILL LICENCES
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inventory:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%d arguments; want it as in: inventory BINARY VERSION BILL LICENCES", len(args))
	}
	binary, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w; want the time of the source in seconds since 1970", err)
	}
	modules, err := linked(info)
	if err != nil {
		return err
	}
	bill, err := json.MarshalIndent(billOf(modules, info.Main.Path, args[1], time.Unix(seconds, 0).UTC(),
		sha256.Sum256(binary)), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[2], append(bill, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(args[3], []byte(texts(modules)), 0o644)
}

// module is one that the binary has code of.
type module struct {
	path, version string
	sum           string // as in go.sum; empty: the standard library's
	licences      []licence
}

// linked are the modules of a binary, with the standard library at first, and the licences of each.
func linked(info *buildinfo.BuildInfo) ([]module, error) {
	dirs, err := directories()
	if err != nil {
		return nil, err
	}
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	dirs["std@"+version] = strings.TrimSpace(string(root))
	all := []module{{path: "std", version: version}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, module{path: m.Path, version: m.Version, sum: m.Sum})
	}
	for i, m := range all {
		dir := dirs[m.path+"@"+m.version]
		if dir == "" {
			return nil, fmt.Errorf("%s %s is not in the module cache; go mod download gets it", m.path, m.version)
		}
		if all[i].licences, err = licencesIn(dir); err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.path, m.version, err)
		}
	}
	return all, nil
}

// directories are where the modules of this build lie, by path@version.
func directories() (map[string]string, error) {
	listed, err := output("go", "list", "-m", "-f", "{{with or .Replace .}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}",
		"all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dirs[module] = dir
	}
	return dirs, nil
}

func output(command string, args ...string) ([]byte, error) {
	c := exec.Command(command, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return out, nil
}
