package formal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// What spin is asked for.
type question int

const (
	// always: what must be true in each state; and how many states there are.
	always question = iota
	// atLast: that, and what must be true in the end of each run, once nothing goes wrong any more.
	atLast
	// fairly: the same, of the runs in which no process that can go on waits for ever.
	fairly
)

// run is one run of spin.
type run struct {
	bounds string // as in docs/proof.md
	asked  question
	states int // that it visits, if it is asked for what is always true
}

var ring = []run{
	{"PEERS=2 MOST=4 CRASHES=1 COMEBACKS=1 ABORTS=1", always, 9_799},
	{"PEERS=2 MOST=3 LOSSES=1", always, 3_388},
	{"PEERS=3 CRASHES=2", always, 11_538},
	{"PEERS=3 CRASHES=1 LEAVES=1", always, 14_607},
	{"PEERS=3 CRASHES=1 LATES=1", always, 98_270},
	{"PEERS=4 LAG=2 CRASHES=1", always, 133_521},
	{"PEERS=5 LAG=1", always, 68_325},

	{"PEERS=2 MOST=4 CRASHES=1 COMEBACKS=1 ABORTS=1", atLast, 0},
	{"PEERS=2 MOST=3 LOSSES=1", fairly, 0},
	{"PEERS=3 CRASHES=2", atLast, 0},
	{"PEERS=3 CRASHES=1 LEAVES=1", atLast, 0},
	{"PEERS=2 CRASHES=1 LATES=1", fairly, 0},
	{"PEERS=4 LAG=1 CRASHES=2", atLast, 0},
	{"PEERS=5 LAG=1", atLast, 0},
}

// fault is one that is planted in a model, and in the Go code.
type fault struct {
	bounds string
	found  string // what spin says
	inGo   string // the name of the fault in the Go code
}

const (
	broken  = "assertion violated"
	forever = "acceptance cycle"
)

var ringFaults = []fault{
	{
		"ONE_SLOT PEERS=4 LAG=1 CRASHES=2", forever,
		"the watch on a joiner is in the one slot that a change of neighbours overwrites",
	},
	{"UNWATCHED_JOINER PEERS=2 CRASHES=1", forever, "nobody watches a joiner"},
	{"UNWATCHED_TARGET PEERS=2 CRASHES=1", forever, "a joiner does not watch its target"},
	{"NO_COLLECTION PEERS=3 CRASHES=2", forever, "no peer-gc"},
	{"LEAVE_KEEPS_JOIN PEERS=3 CRASHES=1", broken, "a leave forgets no join at the member that leaves"},
	{"ACCEPT_KEEPS_WATCHER PEERS=4", broken, "an accept leaves the target with its old watcher"},
	{"SECOND_JOINER PEERS=3", broken, "a target may get a second joiner"},
	{"LATE_ABORT_REMOVES PEERS=2 ABORTS=1", broken, "an abort that comes after the join takes the member out"},
	{"ALONE_ACCEPTS_NOBODY PEERS=2", forever, "a member that is alone accepts nobody"},
	{"ACCEPT_FORGETS_JOIN PEERS=2", forever, "an accept forgets the join, so that joining never ends"},
	{"DEAD_JOINER_STAYS PEERS=2 CRASHES=1", forever, "a dead joiner can't be taken out"},
}

func TestRing(t *testing.T) { holds(t, "ring", ring) }

func TestRingFaults(t *testing.T) {
	find(t, "ring", ringFaults, atLast, "internal/core/cluster/explore_broken_test.go")
}

var forming = []run{
	{"CLUSTERS=1 EMPTIES=1", always, 7_848},
	{"CLUSTERS=1 EMPTIES=3", always, 12_566},
	{"CLUSTERS=2 EMPTIES=0", always, 14_914},
	{"CLUSTERS=2 EMPTIES=1", always, 86_828},
	{"CLUSTERS=2 EMPTIES=2", always, 173_963},
	{"CLUSTERS=3 EMPTIES=0", always, 98_331},

	{"CLUSTERS=1 EMPTIES=1", fairly, 0},
}

var formingFurther = []run{
	{"CLUSTERS=1 EMPTIES=3", fairly, 0},
	{"CLUSTERS=2 EMPTIES=0", fairly, 0},
	{"CLUSTERS=2 EMPTIES=1", fairly, 0},
}

var formingFaults = []fault{
	{"MAJORITY_FORMS CLUSTERS=2 EMPTIES=1", broken, "a cluster is formed by a majority"},
	{"FORGETFUL_FORMS CLUSTERS=1 EMPTIES=1", broken, `a late "all have promised" is obeyed`},
	{"ANY_LIFE CLUSTERS=1 EMPTIES=1", broken, "an offer to a former life is accepted"},
	{"ANY_DISK CLUSTERS=2 EMPTIES=1", broken, "an offer replaces a promise that the founder has not seen"},
	{"ANY_PROMISE CLUSTERS=2 EMPTIES=1", broken, "a machine goes on with another promise than it finds"},
	{"PROMISES_ONCE CLUSTERS=1 EMPTIES=0", forever, "a promise is never replaced"},
	{"NOBODY_FOLLOWS CLUSTERS=1 EMPTIES=0", forever, "a machine does not go on with what it has promised"},
	{"NOBODY_JOINS CLUSTERS=1 EMPTIES=1", forever, "an emptied machine does not join"},

	// These break no promise, as the others refuse: there are more states, and exactly as many more worlds.
	{
		"PROPOSES_BESIDE_SILENCE CLUSTERS=2 EMPTIES=0", " 15404 states, stored",
		"a cluster is proposed while a machine is silent",
	},
	{
		"PROPOSES_BESIDE_DATA CLUSTERS=2 EMPTIES=1", " 117747 states, stored",
		"a cluster is proposed although another has data",
	},
}

func TestForming(t *testing.T) { holds(t, "forming", forming) }

func TestFormingFurther(t *testing.T) { holds(t, "forming", formingFurther) }

func TestFormingFaults(t *testing.T) {
	find(t, "forming", formingFaults, fairly, "internal/test/mutants/mutants.go")
}

// holds runs spin on a model, which must keep its promises.
func holds(t *testing.T, model string, runs []run) {
	t.Helper()
	testenv.Slow(t)
	testenv.Program(t, "spin", "spin")
	docs := strings.ReplaceAll(read(t, "docs/proof.md"), ",", "") // numbers stand there as 9,799
	for _, r := range runs {
		t.Run(r.bounds, func(t *testing.T) {
			states, out := spin(t, model, r.bounds, r.asked)
			if !strings.Contains(out, "errors: 0") {
				t.Fatalf("spin says:\n%s", out)
			}
			t.Logf("%d states", states)
			if r.asked != always {
				return
			}
			if states != r.states {
				t.Errorf("%d states; want %d", states, r.states)
			}
			if row := fmt.Sprintf("| `%s` | %d |", r.bounds, r.states); !strings.Contains(docs, row) {
				t.Errorf("docs/proof.md has no line that begins with %q", row)
			}
		})
	}
}

// find runs spin on a model with a fault planted in it, which it must find; inTheEnd is what spin is asked for where
// runs go on for ever. The same fault is planted in the Go code by a file that names it, and tests find it there.
func find(t *testing.T, model string, faults []fault, inTheEnd question, inGo string) {
	t.Helper()
	testenv.Slow(t)
	testenv.Program(t, "spin", "spin")
	text, code := read(t, "formal/"+model+".pml"), read(t, inGo)
	planted := map[string]bool{}
	for _, f := range faults {
		name, _, _ := strings.Cut(f.bounds, " ")
		planted[name] = true
		if !strings.Contains(code, `"`+f.inGo+`"`) && !strings.Contains(code, "`"+f.inGo+"`") {
			t.Errorf("%s has no fault %q", inGo, f.inGo)
		}
		t.Run(name, func(t *testing.T) {
			asked := always
			if f.found == forever {
				asked = inTheEnd
			}
			if _, out := spin(t, model, f.bounds, asked); !strings.Contains(out, f.found) {
				t.Errorf("spin says:\n%s\nwant: %s", out, f.found)
			}
		})
	}
	for _, m := range regexp.MustCompile(`(?m)^#if(?:n?def) ([A-Z_]+)$`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, "#define "+m[1]+" ") && m[1] != "CALM" && !planted[m[1]] {
			t.Errorf("formal/%s.pml has a fault %s that no test plants", model, m[1])
		}
	}
}

var stored = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)

// spin runs spin, and returns how many states it visited and all that it says.
func spin(t *testing.T, model, bounds string, asked question) (states int, out string) {
	t.Helper()
	folder := t.TempDir()
	from, err := filepath.Abs(filepath.Join(root, "formal", model+".pml"))
	if err != nil {
		t.Fatal(err)
	}
	generate := []string{"-a"}
	for name := range strings.FieldsSeq(bounds) {
		generate = append(generate, "-D"+name)
	}
	compile := []string{"-O1", "-w", "-DNOREDUCE", "-DNFAIR=3", "-o", "pan", "pan.c"}
	search := []string{"-m1000000"}
	switch asked {
	case always:
		compile = append(compile, "-DSAFETY", "-DNOCLAIM")
	case atLast:
		generate, search = append(generate, "-DCALM"), append(search, "-a")
	case fairly:
		generate, search = append(generate, "-DCALM"), append(search, "-a", "-f")
	}
	for _, step := range [][]string{
		append(append([]string{"spin"}, generate...), from),
		append([]string{"gcc"}, compile...), append([]string{"./pan"}, search...),
	} {
		c := exec.Command(step[0], step[1:]...)
		c.Dir = folder
		text, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", step, err, text)
		}
		out = string(text)
	}
	m := stored.FindStringSubmatch(out)
	if m == nil || strings.Contains(out, "max search depth too small") {
		t.Fatalf("spin says:\n%s", out)
	}
	states, _ = strconv.Atoi(m[1])
	return states, out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
