package pgstore

import (
	"fmt"
	"strings"
)

// Of a client in SQL, each transaction is a block of PL/pgSQL in one message, whose search_path is the schema of the
// tables. It has no memory: what other clients notice by what they have read, it leaves to them.

// EnterSQL returns the first statements of a transaction of a client in SQL. They raise an exception when the store is
// not one that the other clients know, or may lose what it commits. They need a variable of the type text, failed.
func EnterSQL() string {
	return fmt.Sprintf(strings.TrimSpace(`
  PERFORM FROM head FOR UPDATE;
  IF NOT EXISTS (SELECT FROM head WHERE format = %d AND origin = %s)
    OR NOT (%s)
  THEN
    RAISE EXCEPTION 'firn''s store was restored, moved, promoted or upgraded, and no node of firn has found '
      'that yet; start one';
  END IF;
  failed := %s;
  IF failed <> '' THEN
    RAISE EXCEPTION 'the server may lose what it has committed: %%', failed;
  END IF;
  PERFORM set_config('synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);`),
		format, origin, intact, breaks)
}

// CountSQL returns the statement that comes before the first write of a transaction of a client in SQL. It needs a
// variable of the type bigint, revision, and sets it: the version of all that the transaction puts.
func CountSQL() string {
	return strings.TrimSpace(`
  UPDATE latest SET revision = latest.revision + 1, verdict = 0
    WHERE latest.revision = (SELECT max(l.revision) FROM latest l) RETURNING latest.revision INTO STRICT revision;`)
}
