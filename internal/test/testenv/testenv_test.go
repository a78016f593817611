package testenv

import (
	"flag"
	"runtime"
	"testing"
)

func TestSlow(t *testing.T) {
	run := flag.Lookup("test.run").Value
	before := run.String()
	defer func() { _ = run.Set(before) }()
	for _, c := range []struct{ tests, run, want string }{
		{"", "", "skipped"},
		{"all", "", "passed"},
		{"", "TestSlow", "passed"},
		{"most", "TestSlow", "failed"},
	} {
		t.Setenv(variable, c.tests)
		if err := run.Set(c.run); err != nil {
			t.Fatal(err)
		}
		if got := outcome(Slow); got != c.want {
			t.Errorf("with %s=%s and -run %q a slow test is %s, want it %s", variable, c.tests, c.run, got, c.want)
		}
	}
}

func TestProgram(t *testing.T) {
	if path := Program(t, "go", "golang"); path == "" {
		t.Error("go has no path")
	}
	for value, want := range map[string]string{"": "skipped", "all": "failed"} {
		t.Setenv(programs, value)
		if got := outcome(func(t testing.TB) { Program(t, "no-such-program", "none") }); got != want {
			t.Errorf("with %s=%s a test without its program is %s, want it %s", programs, value, got, want)
		}
	}
}

// outcome runs f as a test of its own.
func outcome(f func(t testing.TB)) string {
	t := &recorder{got: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(t)
	}()
	<-done
	return t.got
}

// recorder is a test that notes how it ends.
type recorder struct {
	testing.TB
	got string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(string, ...any) {
	r.got = "skipped"
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) {
	r.got = "failed"
	runtime.Goexit()
}
