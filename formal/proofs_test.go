package formal

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

const root = ".."

// packages are those that the proofs name, as they name them, and their folders.
var packages = map[string]string{
	"firn":       ".",
	"store":      "store",
	"peer":       "internal/core/peer",
	"cluster":    "internal/core/cluster",
	"sequencer":  "sequencer",
	"fence":      "internal/core/fence",
	"fresh":      "internal/base/fresh",
	"floor":      "internal/base/floor",
	"attachment": "internal/core/attachment",
	"counter":    "internal/core/counter",
}

func TestTheProofsAreProved(t *testing.T) {
	testenv.Program(t, "coqc", "coq")
	out, err := check(filepath.Join(root, "formal"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range proofs(t) {
		for _, m := range theorem.FindAllStringSubmatch(text, -1) {
			if want := fmt.Sprintf("proved: %s.%s\n", name, m[1]); !strings.Contains(out, want) {
				t.Errorf("%q is not in what the check prints:\n%s", want, out)
			}
		}
	}
}

func check(folder string) (out string, err error) {
	text, err := exec.Command(filepath.Join(root, "formal", "check"), folder).CombinedOutput()
	return string(text), err
}

// A model with less caution has no proof, and a proof with a hole is no proof.
func TestBrokenProofsAreFound(t *testing.T) {
	testenv.Slow(t)
	testenv.Program(t, "coqc", "coq")
	const (
		sound = "Lemma reached_sound w : reached w -> sound w.\n" +
			"Proof. induction 1; [apply start_sound|eapply step_sound; eauto]. Qed."
		unsound = "Lemma reached_sound w : reached w -> sound w.\n"
	)
	texts := proofs(t)
	for _, c := range []struct{ name, old, new, want string }{
		{
			"the store applies what expects an older version", "sent w x -> expects x = now_at w ->",
			"sent w x ->", "Error:",
		},
		{"an owner ignores the horizon that it reads", "    horizon_at w (now_at w) <= f ->\n", "", "Error:"},
		{
			"an owner uses what it has sent", "t < bound (owners w o) ->",
			"(exists x, sent w x /\\ t < horizon x) ->", "Error:",
		},
		{"an owner releases what it still uses", "(forall t, used w o t -> t < e) ->", "", "Error:"},
		{
			"an owner goes on after its end", "ended (owners w o) = false ->\n    floor (owners w o) <= t",
			"\n    floor (owners w o) <= t", "Error:",
		},
		{
			"a process takes its copy's write for its own", "    mine y o s -> written (fence y) v",
			"    written (fence y) v", "Error:",
		},
		{"a stamp is used again", "    (forall x, sent (fence y) x -> writer x <> s) ->\n", "", "Error:"},
		{
			"a write in doubt is forgotten",
			"    (forall x, sent (fence y) x -> mine y o (writer x) -> expects x = known a -> horizon x <= m) ->\n",
			"", "Error:",
		},
		{
			"the store applies a claim that expects an older version of a counter",
			"sent w x -> expects x = now_at w ->\n    step strict", "sent w x -> True ->\n    step strict", "Error:",
		},
		{"a block begins below what is reserved", "last_at w (known a) <= f ->", "True ->", "Error:"},
		{
			"a call that began after the claim gets a number of it", "(strict o = true -> group (owners w o) c) ->",
			"True ->", "Error:",
		},
		{
			"a later claim's callers get what is left of a block", "free a n /\\ strict o = false", "free a n /\\ True",
			"Error:",
		},
		{
			"an answer to a former claim is taken for one to the last",
			"(forall y, sent w y -> stamp y <> s) ->", "True ->", "Error:",
		},
		{"an owner takes a block twice", "known (owners w o) <> now_at w ->", "True ->", "Error:"},
		{
			"an owner gives back what callers got", "(forall n, t < n <= last_at w (known a) -> free a n) ->",
			"True ->", "Error:",
		},
		{"an owner gives back what it still gives", "ended a = true -> t <=", "True -> t <=", "Error:"},
		{
			"an owner gives back again what it may have given back",
			"(forall x, sent w x -> writer x = o -> from x = to x -> expects x = known a \\/ refused w x) ->",
			"True ->", "Error:",
		},
		{"a goroutine takes places that others have taken", "    n <= p -> 1 <= count", "    1 <= count", "Error:"},
		{
			"a Local still has what it has given", "(put (held w) g rest) (p :: given w)", "(held w) (p :: given w)",
			"Error:",
		},
		{"a lemma is admitted", sound, unsound + "Admitted.", "must not rest on"},
		{"an axiom", "Definition name := nat.", "Axiom easy : False.", "must not rest on"},
		{
			"an axiom of the library", sound,
			"From Coq Require Import Classical_Prop.\n" + sound +
				"\nLemma easy : 0 = 0 \\/ 0 <> 0.\nProof. apply classic. Qed.\nTheorem easier : 0 = 0 \\/ 0 <> 0.\n" +
				"Proof. exact easy. Qed.",
			"3 of 4 theorems rest on no axiom",
		},
		{"no theorem", "\nTheorem ", "\nLemma ", "0 of 0 theorems"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := []string{"Fence", "Copy", "Count", "Word"}
			i := slices.IndexFunc(files, func(file string) bool { return strings.Contains(texts[file], c.old) })
			if i < 0 {
				t.Fatalf("none of %q has %q", files, c.old)
			}
			broken := map[string]string{"Fence": texts["Fence"]} // which Copy needs
			broken[files[i]] = strings.ReplaceAll(texts[files[i]], c.old, c.new)
			folder := t.TempDir()
			for file, text := range broken {
				if err := os.WriteFile(filepath.Join(folder, file+".v"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := check(folder); err == nil || !strings.Contains(out, c.want) ||
				strings.Contains(out, "Syntax error") {
				t.Errorf("the check says %q (%v); want %q", out, err, c.want)
			}
		})
	}
}

// proofs are the texts of the files, by their names without the ending.
func proofs(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "formal", "*.v"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no proofs: %v", err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".v")] = string(text)
	}
	return all
}

var (
	theorem = regexp.MustCompile(`(?m)^Theorem (\w+)`)
	stated  = regexp.MustCompile(`(?m)^(?:Theorem|Lemma|Definition|Inductive|Record) (\w+)|^\| (\w+)`)
	linked  = regexp.MustCompile("\\[`(\\w+)`\\]\\((?:\\.\\./)+formal/(\\w+)\\.v\\)")
	steps   = regexp.MustCompile(`(?s)Inductive step .*?\.\n\n`)
	step    = regexp.MustCompile(`(?m)^\| (\w+)`)
	comment = regexp.MustCompile(`(?s)\(\*.*?\*\)`)
	inGo    = regexp.MustCompile(`\b([a-z]+)\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?`)
)

// What the docs name of the proofs, in a link to its file, is there; docs/proof.md names each theorem, and
// docs/safety.md some.
func TestTheDocsNameWhatIsProved(t *testing.T) {
	texts := proofs(t)
	there := map[string]bool{}
	for file, text := range texts {
		for _, m := range stated.FindAllStringSubmatch(text, -1) {
			there[file+"."+m[1]+m[2]] = true
		}
	}
	names := map[string][]string{}
	for _, pattern := range []string{"*.md", "decisions/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, "docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
				name := m[2] + "." + m[1]
				names[filepath.Base(page)] = append(names[filepath.Base(page)], name)
				if !there[name] {
					t.Errorf("%s links to %s in formal/%s.v, which is not there", page, m[1], m[2])
				}
			}
		}
	}
	for file, text := range texts {
		for _, m := range theorem.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(names["proof.md"], file+"."+m[1]) {
				t.Errorf("docs/proof.md does not link to the theorem %s in formal/%s.v", m[1], file)
			}
		}
	}
	if len(names["safety.md"]) == 0 {
		t.Error("docs/safety.md links to no lemma")
	}
}

// Every function, type, method and field that the proofs name, as fence.Step or fence.State.Floor, is in the code; and
// the comment above each step of a model names one.
func TestTheProofsNameWhatIsInTheCode(t *testing.T) {
	code := map[string]bool{}
	for name, folder := range packages {
		for _, d := range declared(t, filepath.Join(root, folder)) {
			code[name+"."+d] = true
		}
	}
	for file, text := range proofs(t) {
		for _, m := range goNames(text) {
			if !code[m] {
				t.Errorf("formal/%s.v names %s, which is not in the code", file, m)
			}
		}
		for _, model := range steps.FindAllString(text, -1) {
			for _, at := range step.FindAllStringSubmatchIndex(model, -1) {
				above := comment.FindAllString(model[:at[0]], -1)
				if len(above) == 0 || !strings.HasSuffix(strings.TrimSpace(model[:at[0]]), "*)") ||
					len(goNames(above[len(above)-1])) == 0 {
					t.Errorf("formal/%s.v: no comment right above the step %s names a Go function", file,
						model[at[2]:at[3]])
				}
			}
		}
	}
	if found := goNames("(* fence.Step, in\n  fence.Fence.Release *) fence.Begin"); !slices.Equal(found,
		[]string{"fence.Step", "fence.Fence.Release"}) {
		t.Errorf("the test finds the names %q in a comment", found)
	}
}

// goNames are the names of Go that the comments of a text have.
func goNames(text string) (names []string) {
	for _, c := range comment.FindAllString(text, -1) {
		for _, m := range inGo.FindAllStringSubmatch(c, -1) {
			if _, ok := packages[m[1]]; ok {
				names = append(names, strings.TrimSuffix(m[1]+"."+m[2]+"."+m[3], "."))
			}
		}
	}
	return names
}

// declared are the functions, types, variables, and, as Type.Name, the methods and fields of the package in a folder.
func declared(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s: %v", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names = append(names, d.Name.Name)
					continue
				}
				of := d.Recv.List[0].Type
				if pointer, ok := of.(*ast.StarExpr); ok {
					of = pointer.X
				}
				names = append(names, fmt.Sprint(of, ".", d.Name.Name))
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					names = append(names, ofSpec(spec)...)
				}
			}
		}
	}
	return names
}

func ofSpec(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			names = append(names, n.Name)
		}
	case *ast.TypeSpec:
		names = append(names, spec.Name.Name)
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return names
		}
		for _, field := range members.List {
			for _, n := range field.Names {
				names = append(names, spec.Name.Name+"."+n.Name)
			}
		}
	}
	return names
}
