package main

import (
	"fmt"
	"testing"

	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/member"
)

// The example keeps its cluster beside its own table, and goes on by itself when the database was gone.
func TestItLivesInADatabase(t *testing.T) {
	testenv.Slow(t)
	defer dbtest.RemoveTemplates()
	server := dbtest.StartPostgres(t)
	p := start(t, "-postgres", server.URL("postgres"), "-window", "3s")
	p.says(t, "is now attached, node ID [0-9]+")
	p.says(t, "[1-9][0-9]* IDs/s, the last [0-9]+ made at .* by node [0-9]+")
	server.Kill(t)
	p.says(t, "no IDs at present: "+member.ErrNotReady.Error()+": the horizon is reached")
	server.Start(t)
	p.says(t, "[1-9][0-9]* IDs/s, the last [0-9]+ made at")
	p.stop(t)
	for _, name := range names {
		if rows := server.SQL(t,
			fmt.Sprintf("SELECT count(*) > 100 FROM orders WHERE what = '%s'", name)); rows != "t" {
			t.Errorf("there are not more than 100 %s", name)
		}
	}
	if left := server.SQL(t, "SELECT count(*) FROM firn.sessions"); left != "0" {
		t.Errorf("%s sessions are left", left)
	}
}

// A row that can't be written is not passed over in silence.
func TestATableOfAnotherShape(t *testing.T) {
	testenv.Slow(t)
	defer dbtest.RemoveTemplates()
	server := dbtest.StartPostgres(t)
	server.SQL(t, "CREATE TABLE orders (id bigint)")
	p := start(t, "-postgres", server.URL("postgres"))
	p.says(t, "IDs are not written: ERROR: INSERT has more")
	p.stop(t)
}
