package deploy

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode"
)

// Origin says where a file came from. It stands at the top of each, so that it can be made again.
type Origin struct {
	Version string // of firn
	Command string // the command line that makes it, without the comment sign
}

//go:embed templates
var sources embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"host": host, "port": port, "ms": milliseconds, "seconds": seconds, "decimal": decimal, "nginxListen": nginxListen, "join": strings.Join, "upper": strings.ToUpper, "ordinal": func(i int) int { return i + 1 },
}).ParseFS(sources, "templates/*.tmpl"))

// text fills in a template whose parameters were found right.
func text(o Origin, name string, parameters any) (string, error) {
	for what, value := range map[string]string{"version": o.Version, "command": o.Command} {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return "", &ParameterError{what, fmt.Errorf("%.80q has a control character in it; want one line", value)}
		}
	}
	var b strings.Builder
	err := templates.ExecuteTemplate(&b, name+".tmpl", struct {
		Origin Origin
		P      any
	}{o, parameters})
	return b.String(), err
}

func milliseconds(d time.Duration) int64 { return d.Milliseconds() }

// seconds rounds up: a limit that is a little too long does no harm.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
