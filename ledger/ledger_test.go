package ledger

import (
	"context"
	"crypto/ed25519"
	"path/filepath"
	"sync"
	"testing"

	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/wire"
)

func testKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, 32)) }

// reopen opens the ledger in dir; close ends it and its store.
func reopen(t testing.TB, dir string) (l *Ledger, end func()) {
	t.Helper()
	db, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err = Open(context.Background(), db, Options{Key: testKey(), Witness: filepath.Join(dir, "witness.jsonl")})
	if err != nil {
		db.Close()
		t.Fatal(err)
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(end)
	return l, end
}

func TestManyWritersOneChain(t *testing.T) {
	dir := t.TempDir()
	l, end := reopen(t, dir)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 50 {
				if err := l.Append(context.Background(), Entry{Kind: "test", Data: []wire.Field{wire.Int("n", int64(i*100+j))}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	end()
	l, _ = reopen(t, dir)
	r, err := l.Verify(context.Background(), filepath.Join(dir, "witness.jsonl"), "")
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Entries != 1600 || r.Unsigned != 0 || r.Witness == 0 {
		t.Errorf("report: %+v", r)
	}
}
