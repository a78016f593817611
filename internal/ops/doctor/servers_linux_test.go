package doctor

import (
	"regexp"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/internal/test/zktest"
)

// The servers of a PostgreSQL and a ZooKeeper are found, with their versions and whether firn may use them; and it is
// told when they are gone.
func TestServersOfStores(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	type server interface {
		Address() string
		Kill(t testing.TB)
	}
	for name, start := range map[string]func() (s server, address, says, may string){
		"PostgreSQL": func() (server, string, string, string) {
			s := dbtest.StartPostgres(t)
			return s, s.URL("postgres"),
				`^PostgreSQL \d+\.\d+.*, primary, without synchronous standbys, \d+ of 100 connections, answers in `,
				"can read and write tables in the schema firn"
		},
		"ZooKeeper": func() (server, string, string, string) {
			s := zktest.Start(t)
			return s, "zookeeper://" + s.Address() + "/ids", `^ZooKeeper 3\.\d+\.\d+, standalone, answers in `,
				"can read and write nodes below /ids"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, address, says, may := start()
			at, err := stores.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			c := Config{Layout: firn.Default, Window: 30 * time.Second}
			c.Use(at)
			var seen Seen
			c.seeStore(t.Context(), &seen)
			found := seen.Store.check()
			if len(found) != 2 || found[0].About != s.Address() ||
				!regexp.MustCompile(says).MatchString(found[0].Found) ||
				found[1].Level == Fail || !regexp.MustCompile("^"+may).MatchString(found[1].Found) {
				t.Errorf("found %+v; want a line like %s, and that it %s", found, says, may)
			}
			if seen.Stored == nil || seen.Stored.Status == nil || len(seen.Stored.Status.Problems) > 0 {
				t.Errorf("of an empty store: %+v", seen.Stored)
			}
			s.Kill(t)
			seen = Seen{}
			c.seeStore(t.Context(), &seen)
			for _, f := range seen.Store.check() {
				if f.Level != Fail || f.Do == "" {
					t.Errorf("the server is gone, and it is found that %+v", f)
				}
			}
		})
	}
}
