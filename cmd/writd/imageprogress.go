package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/sandbox/image"
)

// progress shows long work on standard error: each step on a line of its own and, on a
// terminal, for how long it has run and what it said last.
type progress struct {
	out     *os.File
	width   int // of the terminal; 0: none
	verbose bool
	done    chan struct{}
	ticks   sync.WaitGroup

	mu    sync.Mutex
	last  string
	began time.Time
}

func newProgress(out *os.File, verbose bool) *progress {
	p := &progress{out: out, verbose: verbose, done: make(chan struct{}), began: time.Now()}
	if width, _, err := term.GetSize(int(out.Fd())); err == nil && !verbose {
		p.width = width
		p.ticks.Go(p.tick)
	}
	return p
}

func (p *progress) line(l image.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Step || p.verbose {
		p.clear()
		fmt.Fprintln(p.out, p.short(cli.OneLine(l.Text)))
	}
	if p.last = cli.OneLine(l.Text); l.Step {
		p.last, p.began = "", time.Now()
	}
}

// tick draws the line that changes.
func (p *progress) tick() {
	for every := time.NewTicker(200 * time.Millisecond); ; {
		select {
		case <-p.done:
			every.Stop()
			return
		case <-every.C:
		}
		p.mu.Lock()
		p.clear()
		fmt.Fprint(p.out, p.short(fmt.Sprintf("  %s  %s", time.Since(p.began).Round(time.Second), p.last)))
		p.mu.Unlock()
	}
}

// short is as much of a line as is shown: a step can be a page of commands.
func (p *progress) short(text string) string {
	most := p.width - 1
	if p.width == 0 {
		most = 120
	}
	runes := []rune(text)
	if p.verbose || len(runes) <= most {
		return text
	}
	return string(runes[:max(most-1, 0)]) + "…"
}

func (p *progress) clear() {
	if p.width > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// end leaves the terminal as if only steps had been shown.
func (p *progress) end() {
	close(p.done)
	p.ticks.Wait()
	p.clear()
}
