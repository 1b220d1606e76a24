//go:build linux

package subprocess_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/sandboxtest"
	"github.com/writ-run/writ/sandbox/subprocess"
)

// BenchmarkTrue compares a box with running the program, and with starting this
// binary, which a box does twice. Numbers to compare are the p50 of one run.
func BenchmarkTrue(b *testing.B) {
	d := subprocess.New(subprocess.Options{})
	if _, err := d.Probe(b.Context()); err != nil {
		b.Fatal(err)
	}
	ws := workspace(b)
	listed := confined(ws)
	listed.Exec.Mode = writ.ExecListed
	b.Run("plain", func(b *testing.B) { p50(b, func() error { return exec.Command("/bin/true").Run() }) })
	b.Run("launcher", func(b *testing.B) {
		p50(b, func() error { exec.Command("/proc/self/exe", "__box", "none").Run(); return nil })
	})
	for name, c := range map[string]writ.Confinement{"box": confined(ws), "listed": listed} {
		b.Run(name, func(b *testing.B) {
			sandboxtest.With(b, c, "", func(ctx context.Context, w writ.Writ) {
				p50(b, func() error {
					box, err := d.Start(ctx, w, sandbox.Spec{Argv: []string{"/bin/true"}})
					if err == nil {
						_, err = box.Wait(ctx)
					}
					return err
				})
			})
		})
	}
}

func p50(b *testing.B, f func() error) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
}
