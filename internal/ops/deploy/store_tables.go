package deploy

import (
	"regexp"
	"strings"
)

// StoreTables are the statements that make the tables of a store in PostgreSQL, for an owner of the database to run.
type StoreTables struct {
	SQL    func(schema string) string // the statements
	Schema string
	Role   string // that firn logs in as, and gets the rights that it needs; empty: the statements say what it needs
}

// sqlName is one that needs no quotes.
var sqlName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Text is the SQL.
func (s StoreTables) Text(o Origin) (string, error) {
	var c checks
	const want = "%.80q is not a name; want up to 63 of a-z, 0-9 and _, the first no digit, such as firn"
	c.that(sqlName.MatchString(s.Schema), "postgres-schema", want, s.Schema)
	c.that(s.Role == "" || sqlName.MatchString(s.Role), "role", want, s.Role)
	if c.err != nil {
		return "", c.err
	}
	statements := s.SQL(s.Schema)
	if s.Role != "" {
		statements = strings.NewReplacer("-- GRANT ", "GRANT ", " TO the_role;", ` TO "`+s.Role+`";`).
			Replace(statements)
	}
	return c.text(o, "store.sql", statements)
}
