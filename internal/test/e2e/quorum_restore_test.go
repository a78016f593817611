//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// From a backup, and from what a machine has left, a new cluster makes no ID that the former one made after the backup,
// though a node of the former one lives on.
func TestAQuorumIsRestored(t *testing.T) {
	testenv.Slow(t)
	for _, from := range []string{"a backup", "a directory"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			const window = 3 * time.Second
			q := newKeepers(t, 3, "--window="+window.String())
			q.start()
			lives := q.client()
			lives.ready()
			everywhere := append(q.others(), lives)
			take := func(many int) {
				t.Helper()
				for _, k := range everywhere {
					eventually(t, func() error {
						id, err := k.ids(many)
						q.ledger.add(id)
						return err
					})
				}
			}
			take(1000)
			backup := q.list[0].dir
			if from == "a backup" {
				backup = filepath.Join(t.TempDir(), "firn.backup")
				if out, err := q.firn("quorum", "backup", backup, "--admin",
					strings.TrimPrefix(q.list[1].admin, "http://")); err != nil {
					t.Fatal(err, out)
				}
			}
			take(1000)
			restored := filepath.Join(t.TempDir(), "restored")
			restore := []string{
				"quorum", "restore", backup, "--as", q.list[0].address, "--data-dir", restored,
				"--quorum-key-file", q.key,
			}
			if out, err := q.firn(restore...); err == nil {
				t.Errorf("restored while the former cluster lives:\n%s", out)
			}
			crash(q.list...)
			stale := time.Now()
			if ids, err := lives.ids(1); err != nil {
				t.Errorf("%s has a window left: %v", lives.name, err)
			} else {
				q.ledger.add(ids)
			}
			out, err := q.firn(restore...)
			if err != nil {
				t.Fatal(err, out)
			}
			t.Logf("restored:\n%s", out)
			q.list[0].dir = restored
			for _, k := range q.list[1:] {
				k.dir = filepath.Join(t.TempDir(), "empty")
			}
			q.start()
			q.lasted("all are ready again after a restore", stale, window+10*time.Second+5*time.Second)
			lives.ready()
			take(1000)
			q.ledger.unique(t, 3*4*1000)
		})
	}
}

// ids takes that many IDs in one call.
func (k *keeper) ids(many int) ([]int64, error) {
	client := &http.Client{Transport: k.transport, Timeout: 5 * time.Second}
	response, err := client.Post(fmt.Sprintf("%s/api/v1/ids?count=%d", k.url, many), "", nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		IDs   []int64 `json:"ids"`
		Error any     `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s, %v, %w", k.name, response.Status, answer.Error, err)
	}
	return answer.IDs, nil
}
