package doctor

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// Part is a file in a bundle for support, as JSON without its data.
type Part struct {
	Name string `json:"name"`
	Size int    `json:"size"`           // bytes
	Why  string `json:"why,omitempty"`  // it is not there; empty: it is
	Note string `json:"note,omitempty"` // what is left out of it; empty: nothing
	Data []byte `json:"-"`
}

// WriteBundle writes parts, without these secrets, to a gzipped tar archive with a list of its contents, and returns
// them as they are in it.
func WriteBundle(to io.Writer, now time.Time, parts []Part, secrets *Secrets) ([]Part, error) {
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)
	put := func(name string, data []byte) error {
		h := &tar.Header{
			Name: "firn-bundle/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: now,
			Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		_, err := archive.Write(data)
		return err
	}
	done := make([]Part, 0, len(parts))
	for _, p := range parts {
		p.Data, p.Why = secrets.Remove(p.Data), string(secrets.Remove([]byte(p.Why)))
		p.Size = len(p.Data)
		done = append(done, p)
	}
	if err := put("contents.txt", []byte(Contents(done))); err != nil {
		return nil, err
	}
	for _, p := range done {
		if p.Why != "" {
			continue
		}
		if err := put(p.Name, p.Data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return done, zipped.Close()
}

// Contents says for people what is in a bundle, and why what is missing is.
func Contents(parts []Part) string {
	var text, missing strings.Builder
	for _, p := range parts {
		switch {
		case p.Why != "":
			fmt.Fprintf(&missing, "  %-16s %s\n", p.Name, p.Why)
		case p.Note != "":
			fmt.Fprintf(&text, "  %-16s %9d bytes; %s\n", p.Name, p.Size, p.Note)
		default:
			fmt.Fprintf(&text, "  %-16s %9d bytes\n", p.Name, p.Size)
		}
	}
	if missing.Len() > 0 {
		text.WriteString("not in it:\n" + missing.String())
	}
	return text.String()
}

// Facts returns what this machine and its system are, for people.
func Facts(now time.Time) []byte {
	host, err := os.Hostname()
	if err != nil {
		host = err.Error()
	}
	var text strings.Builder
	fmt.Fprintf(&text,
		"time          %s\nhost          %s\nsystem        %s/%s\nprocessors    %d, of which Go uses %d\n"+
			"user          %d, group %d\n",
		now.UTC().Format(time.RFC3339Nano), host, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.GOMAXPROCS(0),
		os.Getuid(), os.Getgid())
	for _, path := range []string{
		"/proc/version", "/etc/os-release", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/self/limits",
		"/proc/self/cgroup",
		"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource",
	} {
		if data := contents(path); len(data) > 0 {
			fmt.Fprintf(&text, "\n%s\n%s", path, data)
		}
	}
	return []byte(text.String())
}
