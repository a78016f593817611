package pgstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// DefaultSchema is the schema that holds firn's tables.
const DefaultSchema = "firn"

// format is the version of the tables. A client refuses another one.
const format = 2

// schemaName is what a schema may be called: it stands in SQL, and its name is that of the channel of notifications.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// place is an SQL expression that tells which server this is: another one, and one that went on from another one's
// data, have another one. Services that keep their data in another way than PostgreSQL have no answer.
const place = `(SELECT system_identifier FROM pg_control_system())
  || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)`

// origin is an SQL expression that tells where the tables live: other tables of the same name, such as those restored
// from a dump, have another one. head must be in the search path.
const origin = place + `
  || ':' || (SELECT oid FROM pg_database WHERE datname = current_database())
  || ':' || 'head'::regclass::oid`

// fromLatest is the row that each transaction makes anew, for a FROM. It is found from the end of its index: the
// versions that a long transaction of others keeps from being removed lie before it, and cost nothing.
const fromLatest = "(SELECT revision, verdict FROM latest ORDER BY revision DESC LIMIT 1) AS latest"

// names are those of the tables.
const names = "'head', 'latest', 'sessions', 'keys', 'log', 'checkpoint'"

// intact is an SQL expression that tells whether the rows are there that no client ever deletes. Whoever empties a
// table by hand deletes them, too. Those of head and latest are looked for where they are used; a session may end at
// any time.
const intact = `EXISTS (SELECT FROM keys WHERE key = '') AND EXISTS (SELECT FROM log WHERE position = 0) AND EXISTS ` +
	`(SELECT FROM checkpoint)`

// tables makes what a store needs. The server tidies the tables early that are written often, so that they stay small.
const tables = `-- The tables of a firn cluster. It is safe to run this again.
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('{schema}'));
CREATE SCHEMA IF NOT EXISTS "{schema}";
SET LOCAL search_path = "{schema}";

-- One row, which hardly ever changes. Every transaction locks it first, so that
-- transactions take revisions in the order in which they commit.
CREATE TABLE IF NOT EXISTS head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  format integer NOT NULL,   -- of these tables
  identity uuid NOT NULL,    -- changes when the store has lost data
  origin text NOT NULL       -- where identity was given
);
LOCK TABLE head IN EXCLUSIVE MODE; -- transactions wait before they hold what is changed below

-- One row, which every transaction changes.
CREATE TABLE IF NOT EXISTS latest (
  revision bigint PRIMARY KEY, -- counts transactions
  verdict smallint NOT NULL    -- on the conditions of the latest transaction; 0: they hold
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A session ends when nobody has renewed it; its keys go with it.
CREATE TABLE IF NOT EXISTS sessions (
  id bigint PRIMARY KEY,
  ttl bigint NOT NULL, -- in milliseconds
  expires timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
CREATE INDEX IF NOT EXISTS sessions_expires ON sessions (expires);

-- The row with an empty key is always there.
CREATE TABLE IF NOT EXISTS keys (
  key bytea PRIMARY KEY, -- in UTF-8: convert_from(key, 'UTF8')
  value bytea NOT NULL,
  version bigint NOT NULL, -- the revision of the latest write
  created bigint NOT NULL, -- the revision of the write that made the key
  session bigint           -- empty: the key stays
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);
CREATE INDEX IF NOT EXISTS keys_session ON keys (session) WHERE session IS NOT NULL;
DELETE FROM keys WHERE NOT EXISTS (SELECT FROM sessions WHERE id = session) AND session IS NOT NULL;
ALTER TABLE keys DROP CONSTRAINT IF EXISTS keys_session_fkey;
ALTER TABLE keys ADD CONSTRAINT keys_session_fkey FOREIGN KEY (session) REFERENCES sessions ON DELETE CASCADE;

-- The row at position 0 is always there.
CREATE TABLE IF NOT EXISTS log (
  position bigint PRIMARY KEY,
  id text COLLATE "C" UNIQUE NOT NULL,
  data bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);

-- One row: what the entries up to a position led to.
CREATE TABLE IF NOT EXISTS checkpoint (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  position bigint NOT NULL,
  version bigint NOT NULL,
  value bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50,
  toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 500);

-- The first rows, for tables that are all new. What is missing in others was lost, and the next client sees to that.
-- Revisions begin with the time, so that they are greater than those of tables that were here before.
WITH fresh AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS revision
    WHERE NOT EXISTS (SELECT FROM head) AND NOT EXISTS (SELECT FROM latest) AND NOT EXISTS (SELECT FROM keys)
      AND NOT EXISTS (SELECT FROM log) AND NOT EXISTS (SELECT FROM checkpoint)),
  in_head AS (INSERT INTO head (format, identity, origin) SELECT {format}, gen_random_uuid(),
    {origin} FROM fresh),
  in_latest AS (INSERT INTO latest (revision, verdict) SELECT revision, 0 FROM fresh),
  in_keys AS (INSERT INTO keys (key, value, version, created) SELECT '', '', revision, revision FROM fresh),
  in_log AS (INSERT INTO log (position, id, data) SELECT 0, '', '' FROM fresh)
INSERT INTO checkpoint (position, version, value) SELECT 0, 0, '' FROM fresh;
COMMIT;

-- The role that firn logs in as, if it is not the one that runs this, needs these rights:
-- GRANT USAGE ON SCHEMA "{schema}" TO the_role;
-- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO the_role;
`

// SQL returns the statements that make the tables of a store in a schema, for a database in which firn itself may not
// create them. An empty schema is [DefaultSchema]. It is safe to run them again. SQL panics when the name is not one
// that [Config.Schema] may have.
func SQL(schema string) string {
	if schema == "" {
		schema = DefaultSchema
	}
	if !schemaName.MatchString(schema) {
		panic(fmt.Sprintf("pgstore: the schema is called %q", schema))
	}
	return strings.NewReplacer("{schema}", schema, "{format}", strconv.Itoa(format), "{origin}", origin).Replace(tables)
}
