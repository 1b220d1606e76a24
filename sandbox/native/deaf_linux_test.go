package native

import (
	"context"
	"testing"
	"time"

	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// TestDeaf: a command whose launcher hears nothing any more is ended all the same, and so is
// one whose launcher was killed; what ended it is told.
func TestDeaf(t *testing.T) {
	f := begun(t)
	for _, kind := range cells {
		again, p := kind[0], simply(kind[1])
		p.Path, p.Argv, p.Dir, p.Env = "/bin/sleep", []string{"sleep", "600"}, "/", nil
		by, err := f.newRecipe(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.newCell(by, again, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.end()
		r, err := c.ready()
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.run(p, sandbox.Spec{Argv: p.Argv}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(c.pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		told := make(chan sandbox.Exit, 1)
		go func() {
			exit, err := b.Wait(ctx)
			if err != nil {
				t.Error(err)
			}
			told <- exit
		}()
		select {
		case exit := <-told:
			if exit.Limit != "cancelled" || exit.Code != -1 {
				t.Errorf("again %t: %+v", again, exit)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("again %t: it is waited for still", again)
		}
		if !ends(c.pid) {
			t.Errorf("again %t: the launcher is left", again)
		}
	}
}
