// Package approval is the life of an invocation: it is asked about where a person
// has to agree, answered at most once, claimed by one worker, run at most once, and
// ends in exactly one way. Everything here is durable and compare-and-set; the
// schema of the store refuses what this package would get wrong. Nothing approves
// by itself.
package approval

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// Options set up a Desk.
type Options struct {
	Store  *store.DB
	Ledger *ledger.Ledger
	Key    []byte       // 32 bytes that seal the arguments of pending calls and kept outcomes
	Terms  func() Terms // asked for each request
	// Inputs reads what the files that a call names hold now, so that a change
	// between asking and running shows. Nil: nothing is bound but the call.
	Inputs func(writ.Call) []Input
	// Edit takes a call with other arguments through the edge and the decision, as if
	// its agent had made it so. Nil: arguments cannot be edited.
	Edit func(ctx context.Context, c writ.Call, args string) (writ.Call, writ.Decision, error)
}

// Desk is where calls wait for people, and where their starts and ends are written
// down. It implements writ.Approver and writ.Recorder, and is safe for concurrent use.
type Desk struct {
	store   *store.DB
	ledger  *ledger.Ledger
	seal    cipher.AEAD
	answers []byte // key of the proofs that people's answers were taken here
	terms   func() Terms
	inputs  func(writ.Call) []Input
	edit    func(ctx context.Context, c writ.Call, args string) (writ.Call, writ.Decision, error)
	worker  string           // this desk, among all that ever were
	asked   lately[struct{}] // what it was asked about
	shown   lately[opened]   // what it has shown, by digest

	mu       sync.Mutex
	changed  chan struct{}    // closed and replaced whenever some invocation changes
	held     map[string]int   // approved or awaited here, by somebody who will claim it
	fences   map[string]int64 // of what runs here
	mayHold  int              // bytes of arguments that waiting callers of one agent may hold
	waiting  map[string]int   // bytes of arguments that callers of an agent hold while they wait
	unsaid   []unsaid         // ends that could not be written down yet
	granted  int              // how many grants were made here
	expiring sync.Mutex       // one sweeps at a time
	saying   sync.Mutex       // and one says what was unsaid
}

// NewDesk readies a desk.
func NewDesk(o Options) (*Desk, error) {
	if len(o.Key) != 32 {
		return nil, fmt.Errorf("sealing key: it has %d bytes instead of 32", len(o.Key))
	}
	block, err := aes.NewCipher(o.Key)
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	answers, err := hkdf.Expand(sha256.New, o.Key, "answers", 32)
	if err != nil {
		return nil, err
	}
	d := &Desk{
		answers: answers, asked: lately[struct{}]{most: 10_000}, shown: lately[opened]{most: 64},
		store: o.Store, ledger: o.Ledger, seal: aead, terms: o.Terms, inputs: o.Inputs, edit: o.Edit,
		worker: "w_" + strings.ToLower(rand.Text()[:16]), changed: make(chan struct{}), held: map[string]int{}, mayHold: maxWaiting, waiting: map[string]int{}, fences: map[string]int64{},
	}
	if d.inputs == nil {
		d.inputs = func(writ.Call) []Input { return nil }
	}
	return d, nil
}

// now is the ledger's clock, which never goes back: an approval that was over stays
// over, whatever somebody does to the machine's clock.
func (d *Desk) now() time.Time { return d.ledger.Time() }

func stamp(t time.Time) string { return t.UTC().Format(ledger.TimeFormat) }

// Watch is closed when something changes. Take it before looking, so that no change
// is missed.
func (d *Desk) Watch() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Changed wakes everybody who waits; also called after a stop ended requests.
func (d *Desk) Changed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
}

// grants counts those made here, so that whoever waits sees that there is a new one.
func (d *Desk) grants() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.granted
}

// hold says that somebody here will claim an invocation once it is approved, so that
// nobody else here has to.
func (d *Desk) hold(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[id]++
}

// maxWaiting bounds the arguments that the waiting callers of one agent hold in memory.
const maxWaiting = 64 << 20

// mayWait reports whether a caller can wait here, until it leaves.
func (d *Desk) mayWait(c writ.Call) (leave func(), ok bool) {
	base, _, _ := strings.Cut(c.Agent, "/") // a child's name begins with its parent's
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[base]+len(c.Args) > d.mayHold {
		return func() {}, false
	}
	d.waiting[base] += len(c.Args)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.waiting[base] -= len(c.Args); d.waiting[base] == 0 {
			delete(d.waiting, base)
		}
	}, true
}

// awaited reports whether somebody here waits for an invocation.
func (d *Desk) awaited(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held[id] > 0
}

// letGo undoes hold. Whoever runs what nobody waits for is woken: it may be theirs now.
func (d *Desk) letGo(id string) {
	d.mu.Lock()
	d.held[id]--
	none := d.held[id] <= 0
	if none {
		delete(d.held, id)
	}
	d.mu.Unlock()
	if none {
		d.Changed()
	}
}

// NewID makes the id of an invocation. Ids of later ones sort after earlier ones, so
// that what is kept by id stays together.
func NewID(now time.Time) string {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	b := []byte("call_00000000")
	ms := now.UnixMilli()
	for i := len(b) - 1; i >= len("call_"); i-- {
		b[i] = digits[ms&31]
		ms >>= 5
	}
	return string(b) + strings.ToLower(rand.Text()[:10])
}
