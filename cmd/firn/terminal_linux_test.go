package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onTerminal runs a command as a person does who types something, and returns what the terminal shows.
func onTerminal(t *testing.T, env []string, typed string, args ...string) (status int, shown string) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	defer keyboard.Close()
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	screen := make(chan string)
	go func() {
		text, _ := io.ReadAll(keyboard) // it ends with an error, when nobody has the terminal any more
		screen <- string(text)
	}()
	if _, err := keyboard.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	status = run(t.Context(), args, env, terminal, terminal, terminal)
	_ = terminal.Close()
	return status, strings.ReplaceAll(<-screen, "\r\n", "\n")
}

// Errors, warnings and states have colours on a terminal, unless it has none or a variable says so.
func TestColours(t *testing.T) {
	for _, tt := range []struct{ command, want string }{
		{"decode --format hex abc", "\x1b[31mfirn:\x1b[0m \"abc\""},
		{"doctor --settings --http-adr :1", "\x1b[31mfirn:\x1b[0m unknown flag"},
		{"doctor --http-addr 127.0.0.1:0 --admin-addr none --data-dir " + t.TempDir(), "\n\x1b[32mok\x1b[0m    layout "},
		{"id --server 127.0.0.1:1", "\x1b[33mfirn: warning:\x1b[0m FIRN_SERVR is not used; did you mean FIRN_SERVER?\n\x1b[31mfirn:\x1b[0m"},
	} {
		env := []string{"TERM=xterm", "FIRN_SERVR=x"}
		if _, shown := onTerminal(t, env, "", strings.Fields(tt.command)...); !strings.Contains(shown, tt.want) {
			t.Errorf("%s shows %q; want %q", tt.command, shown, tt.want)
		}
		for _, without := range []string{"NO_COLOR=1", "TERM=dumb"} {
			if _, shown := onTerminal(t, append(env, without), "", strings.Fields(tt.command)...); strings.Contains(shown, "\x1b") || shown == "" {
				t.Errorf("%s with %s shows %q", tt.command, without, shown)
			}
		}
	}
}
