package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/firn-id/firn/internal/test/overlay"
)

// What docs/comparison.md says of a clock that steps back under load: which libraries make IDs a second time. The test
// builds a program with a clock that the program steps itself.
func TestClockStepsBack(t *testing.T) {
	dir := t.TempDir()
	argument, err := overlay.Write(dir, overlay.SteppableClock())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "stepped")
	if out, err := exec.Command("go", "build", argument, "-o", program, "./stepped").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := exec.Command(program)
	run.Env = append(os.Environ(), "FAKE_WALL_FILE="+filepath.Join(dir, "clock"))
	out, err := run.CombinedOutput()
	t.Logf("\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	repeats := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(.*?) +(\d+) of +\d+ IDs come twice$`).
		FindAllStringSubmatch(string(out), -1) {
		repeats[m[1]] = m[2] != "0"
	}
	for name, want := range map[string]bool{
		"firn": false, "bwmarrin/snowflake": false, "sony/sonyflake": false, "yitter/idgenerator method 1": false,
		"yitter/idgenerator method 2": true,
	} {
		if got, ok := repeats[name]; !ok || got != want {
			t.Errorf("%s repeats IDs: %t, tried: %t; want %t", name, got, ok, want)
		}
	}
}
