package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/sandbox/native"
)

// A panic, also in a goroutine beside, puts the terminal back before it ends the program.
func TestWatchPanics(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(context.Context, *watch){
		"in the loop": func(ctx context.Context, w *watch) { w.tell(ctx, func(*watch) { panic("on purpose") }) },
		"beside it": func(ctx context.Context, w *watch) {
			var wg sync.WaitGroup
			w.begin(ctx, &wg, func() { panic("on purpose") })
			wg.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs, err := native.OpenTerminal()
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			defer theirs.Close()
			before, err := term.GetState(int(theirs.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			w := newWatch(&App{}, client.Dial(t.TempDir()), &PassphraseSource{}, &screen{in: theirs, out: theirs})
			go start(t.Context(), w)
			func() {
				defer func() {
					if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "on purpose") {
						t.Errorf("recovered %v", p)
					}
				}()
				t.Errorf("it ends: %v", w.run(t.Context()))
			}()
			if after, err := term.GetState(int(theirs.Fd())); err != nil || !reflect.DeepEqual(after, before) {
				t.Errorf("the modes are %+v, they were %+v (%v)", after, before, err)
			}
			raw := ""
			for b := make([]byte, 4096); !strings.Contains(raw, leaveScreen); {
				if err := ours.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
				n, err := ours.Read(b)
				if raw += string(b[:n]); err != nil {
					t.Fatalf("it leaves another screen, or no cursor: %v: %q", err, raw)
				}
			}
			if in, out := strings.LastIndex(raw, enterScreen), strings.LastIndex(raw, leaveScreen); in < 0 || out < in {
				t.Errorf("it enters again: %q", raw)
			}
		})
	}
}
