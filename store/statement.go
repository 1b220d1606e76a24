package store

import (
	"context"
	"database/sql"
	"strings"
)

// statement is a prepared one, and which argument goes to which of its parameters.
type statement struct {
	*sql.Stmt
	order []int // nil: as they come
}

// prepare makes a statement on a connection, or on any of the pool.
func (db *DB) prepare(ctx context.Context, on interface {
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}, query string) (s statement, err error) {
	if db.placed {
		query, s.order = placed(query)
	}
	s.Stmt, err = on.PrepareContext(ctx, query)
	return s, err
}

// args puts the arguments of $1, $2, … where they belong.
func (s statement) args(args []any) []any {
	if s.order == nil {
		return args
	}
	out := make([]any, len(s.order))
	for n, from := range s.order {
		out[n] = args[from]
	}
	return out
}

// placed turns $1, $2, … into ?, and says which argument each is; nil where they come in
// order. $1 is a name to some engines, which they would look up at every run.
func placed(query string) (string, []int) {
	pieces := strings.Split(query, "$")
	var text strings.Builder
	text.WriteString(pieces[0])
	var order []int
	inOrder := true
	for n, piece := range pieces[1:] {
		rest := strings.TrimLeft(piece, "0123456789")
		number := 0
		for _, digit := range piece[:len(piece)-len(rest)] {
			number = number*10 + int(digit-'0')
		}
		order = append(order, number-1)
		inOrder = inOrder && number == n+1
		text.WriteString("?" + rest)
	}
	if inOrder {
		return text.String(), nil
	}
	return text.String(), order
}
