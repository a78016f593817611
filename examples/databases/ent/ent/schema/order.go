// Package schema is what ent makes its code from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"

	"github.com/firn-id/firn"
)

// Order has an ID of firn as its primary key.
type Order struct {
	ent.Schema
}

// Fields are the columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").GoType(firn.ID(0)).
			Annotations(entsql.Annotation{Incremental: new(bool)}), // false: the database makes no IDs
		field.String("item"),
	}
}
