package pgstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// DefaultSchema is the schema that holds firn's tables.
const DefaultSchema = "firn"

// format is the version of the tables. A client refuses a later one.
const format = 1

// schemaName is what a schema may be called: it stands in SQL, and its name is that of the channel of notifications.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// origin is an SQL expression that tells where the tables live: another server, a server that went on from another one's
// data, another database, and tables that were restored from a dump have another one. head must be in the search path.
const origin = `(SELECT system_identifier FROM pg_control_system())
  || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
  || ':' || (SELECT oid FROM pg_database WHERE datname = current_database())
  || ':' || 'head'::regclass::oid`

// tables makes what a store needs. Every row that is written often lies in a table with free space in its pages, and the
// server tidies the small tables early, so that they stay small.
const tables = `-- The tables of a firn cluster. It is safe to run this again.
BEGIN;
SELECT pg_advisory_xact_lock(hashtext('{schema}'));
CREATE SCHEMA IF NOT EXISTS "{schema}";
SET LOCAL search_path = "{schema}";

-- One row. Every transaction locks it first, so that transactions take revisions in the order in which they commit.
CREATE TABLE IF NOT EXISTS head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  format integer NOT NULL,   -- of these tables
  revision bigint NOT NULL,  -- counts transactions
  verdict smallint NOT NULL, -- on the conditions of the latest transaction; 0: they hold
  identity uuid NOT NULL,    -- changes when the store has lost data
  origin text NOT NULL,      -- where identity was given
  longest bigint NOT NULL    -- the longest window of the members, in milliseconds
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A session ends when nobody has renewed it; its keys go with it.
CREATE TABLE IF NOT EXISTS sessions (
  id bigint PRIMARY KEY,
  ttl bigint NOT NULL, -- in milliseconds
  expires timestamptz NOT NULL
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

CREATE TABLE IF NOT EXISTS keys (
  key bytea PRIMARY KEY, -- in UTF-8: convert_from(key, 'UTF8')
  value bytea NOT NULL,
  version bigint NOT NULL, -- the revision of the latest write
  created bigint NOT NULL, -- the revision of the write that made the key
  session bigint REFERENCES sessions ON DELETE CASCADE
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);
CREATE INDEX IF NOT EXISTS keys_session ON keys (session) WHERE session IS NOT NULL;

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

-- Revisions begin with the time, so that they are greater than those of tables that were here before. Nothing here waits
-- for a transaction on these rows, which may wait for the lock of an index above.
INSERT INTO head (format, revision, verdict, identity, origin, longest)
  SELECT {format}, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, gen_random_uuid(),
    {origin}, 0
  WHERE NOT EXISTS (SELECT FROM head);
INSERT INTO checkpoint (position, version, value) SELECT 0, 0, '' WHERE NOT EXISTS (SELECT FROM checkpoint);
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
