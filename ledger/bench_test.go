package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writ-run/writ/wire"
)

// likeACall is an entry of the size that a call's start has.
func likeACall() Entry {
	return Entry{Kind: "call.started", Call: "call_0123456789abcdef", Agent: "coder", Data: []wire.Field{
		wire.Str("tool", "shell_command"), wire.Str("definition", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"), wire.Str("args_sha256", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
		wire.Int("args_bytes", 120), wire.Str("session", "tok_abc/2026-01-01"), wire.Str("policy", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
	}}
}

// BenchmarkAppend is to be read beside BenchmarkBareCommit on the same disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l, _ := reopen(b, b.TempDir())
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := l.Append(context.Background(), likeACall()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// BenchmarkBareCommit is the least that durability costs: one row and its index a
// transaction, with the settings that the store has.
func BenchmarkBareCommit(b *testing.B) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(b.Context(), `CREATE TABLE t (seq INTEGER PRIMARY KEY, call TEXT, body TEXT); CREATE INDEX t_call ON t (call)`); err != nil {
		b.Fatal(err)
	}
	insert, err := conn.PrepareContext(b.Context(), `INSERT INTO t (call, body) VALUES ('call_0123456789abcdef', $1)`)
	if err != nil {
		b.Fatal(err)
	}
	body := string(make([]byte, 700))
	b.ResetTimer()
	for range b.N {
		if _, err := insert.ExecContext(b.Context(), body); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
