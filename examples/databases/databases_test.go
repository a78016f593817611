package databases

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Every recipe does what it says, against a database and a node of firn.
func TestRecipes(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	address := dbtest.StartPostgres(t).Address()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "firn")
	output(t, exec.Command("go", "-C", "../..", "build", "-o", bin, "./cmd/firn"))
	url := serve(t, bin, filepath.Join(dir, "data"))
	functions := output(t, exec.Command(bin, "gen", "sql", "--dialect", "postgres"))
	clients, err := filepath.Abs("../../clients")
	if err != nil {
		t.Fatal(err)
	}

	for name, recipe := range map[string][]string{
		"pgx":         {"go", "run", "./pgx"},
		"pgx_member":  {"go", "run", "./pgx"},
		"gorm":        {"go", "run", "./gorm"},
		"gorm_member": {"go", "run", "./gorm"},
		"ent":         {"go", "run", "./ent"},
		"ent_member":  {"go", "run", "./ent"},
		"sqlc":        {"go", "run", "./sqlc"},
		"sqlc_member": {"go", "run", "./sqlc"},
		"pg":          {"node", "node/pg.js"},
		"typeorm":     {"node", "node/typeorm.js"},
		"hibernate": {
			"java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp",
			"/usr/share/java/*:" + dir + "/java/*:" + dir, "Orders",
		},
		"sqlalchemy": {"/usr/bin/python3", "sqlalchemy/orders.py"}, // Debian's, which has its packages
		"django":     {"/usr/bin/python3", dir + "/django/recipe.py"},
		"fastapi":    {"/usr/bin/python3", "fastapi/orders.py"},
	} {
		t.Run(name, func(t *testing.T) {
			switch recipe[0] {
			case "node":
				testenv.Program(t, "node", "nodejs")
				if _, err := os.Stat("node/node_modules"); err != nil {
					t.Skip("its packages are not installed: npm ci --prefix examples/databases/node")
				}
			case "java":
				testenv.Program(t, "javac", "default-jdk-headless")
				for jar, debian := range map[string]string{
					"hibernate-core": "libhibernate3-java",
					"javassist":      "libjavassist-java", "postgresql": "libpostgresql-jdbc-java",
				} {
					if _, err := os.Stat("/usr/share/java/" + jar + ".jar"); err != nil {
						testenv.Missing(t, jar, debian)
					}
				}
				output(t, exec.Command(clients+"/java/build", dir+"/java"))
				output(t, exec.Command("javac", "-cp", "/usr/share/java/*:"+dir+"/java/*", "-d", dir,
					"hibernate/Orders.java"))
			case "/usr/bin/python3":
				for _, module := range map[string][]string{
					"sqlalchemy": {"sqlalchemy", "psycopg2"},
					"django":     {"django", "psycopg2"},
					"fastapi":    {"fastapi", "httpx", "sqlalchemy", "psycopg2"},
				}[name] {
					if _, err := os.Stat("/usr/lib/python3/dist-packages/" + module); err != nil {
						testenv.Missing(t, module, "python3-"+module)
					}
				}
			}
			service, embedded := url, strings.HasSuffix(name, "_member")
			if embedded {
				service = "" // the program makes its IDs
			}
			environment := append(os.Environ(), "PGHOST="+host, "PGPORT="+port, "PGUSER=postgres", "PGDATABASE="+name,
				"FIRN_URL="+service,
				"JDBC_URL=jdbc:postgresql://"+address+"/"+name, "PYTHONPATH="+clients+"/python",
				"PYTHONDONTWRITEBYTECODE=1")
			output(t, exec.Command("psql", "-X", "-q", "-h", host, "-p", port, "-U", "postgres", "-c",
				"CREATE DATABASE "+name))
			psql := exec.Command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1")
			psql.Env, psql.Stdin = environment, strings.NewReader(functions)
			output(t, psql)
			if name == "django" {
				migrate(t, dir+"/django", environment)
			}

			c := exec.Command(recipe[0], recipe[1:]...)
			c.Env = environment
			got := output(t, c)
			m := regexp.MustCompile(`(?m)^json: (.*)$`).FindStringSubmatch(got)
			if m == nil {
				t.Fatalf("it prints no JSON:\n%s", got)
			}
			want := "since: bread butter jam\npage: tea milk\npage: sugar bread\npage: butter jam\njson: " + m[1] +
				"\nback: bread\n"
			if got != want {
				t.Errorf("it prints\n%swant\n%s", got, want)
			}
			var order map[string]any // as a browser reads it: a number would be a double
			if err := json.Unmarshal([]byte(m[1]), &order); err != nil {
				t.Fatal(err)
			}
			id, err := firn.Parse(fmt.Sprint(order["id"]))
			if _, ok := order["id"].(string); !ok || err != nil || order["item"] != "bread" {
				t.Errorf("the JSON is %s; want an ID as a string, and bread: %v", m[1], err)
			}
			at, err := firn.Default.Time(id)
			if ago := time.Since(at); err != nil || ago < 0 || ago > 10*time.Minute {
				t.Errorf("the ID %v was made %v ago: %v", id, ago, err)
			}
			query := fmt.Sprintf("SELECT item FROM orders WHERE id = %d AND pg_typeof(id) = 'bigint'::regtype", id)
			check := exec.Command("psql", "-X", "-A", "-t", "-c", query)
			check.Env = environment
			if item := output(t, check); item != "bread\n" {
				t.Errorf("the database has %q under that ID", item)
			}
			members := exec.Command("psql", "-X", "-A", "-t", "-c", "SELECT to_regnamespace('firn') IS NOT NULL")
			members.Env = environment
			if got, want := output(t, members), map[bool]string{false: "f\n", true: "t\n"}[embedded]; got != want {
				t.Errorf("that the database has the members of a cluster is %q, want %q", got, want)
			}
		})
	}
}

// migrate copies the project in Django, writes its first migration, for which no node is needed, and runs it. The
// migration is the whole model: Django finds nothing that another one should change.
func migrate(t *testing.T, project string, environment []string) {
	t.Helper()
	if err := os.CopyFS(project, os.DirFS("django")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(project + "/orders/migrations"); err != nil { // of whoever tried it by hand
		t.Fatal(err)
	}
	for _, args := range [][]string{{"makemigrations", "orders"}, {"makemigrations", "--check"}, {"migrate"}} {
		c := exec.Command("/usr/bin/python3", append([]string{project + "/manage.py"}, args...)...)
		c.Env = append(environment, "FIRN_URL=http://127.0.0.1:1")
		output(t, c)
	}
}

// output is what a command prints. The test ends if the command fails.
func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var failed strings.Builder
	c.Stderr = &failed
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", c, err, out, failed.String())
	}
	return string(out)
}

// serve starts a node, and returns its URL when it gives IDs.
func serve(t *testing.T, bin, data string) string {
	t.Helper()
	c := exec.Command(bin, "serve", "--data-dir", data, "--http-addr", "127.0.0.1:0", "--admin-addr", "none")
	logged, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(logged); lines.Scan(); {
			if m := regexp.MustCompile(`msg=listening addr=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-read
		_ = c.Wait()
	})
	deadline := time.After(time.Minute)
	var url string
	select {
	case a := <-address:
		url = "http://" + a
	case <-read:
		t.Fatal("firn serve has ended")
	case <-deadline:
		t.Fatal("firn serve does not listen")
	}
	for {
		answer, err := http.Get(url + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return url
			}
		}
		select {
		case <-deadline:
			t.Fatalf("firn serve gives no IDs: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
