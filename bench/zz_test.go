package main

import (
	"context"
	"crypto/ed25519"
	"path/filepath"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store/sqlite"
)

func BenchmarkGate(b *testing.B) {
	dir := b.TempDir()
	d, c, err := decider()
	if err != nil {
		b.Fatal(err)
	}
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "store"))
	if err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Open(context.Background(), db, ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32)), Witness: filepath.Join(dir, "witness")})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { l.Close(); db.Close() }()
	desk, err := newDesk(db, l, c)
	if err != nil {
		b.Fatal(err)
	}
	g := writ.NewGate(d, noApprover{}, desk, noop{})
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c := c
			c.ID = approval.NewID(l.Time())
			if _, err := g.Do(context.Background(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
