package calls

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Kind is the sort of box that a filter is for.
type Kind struct {
	Listed bool // only listed programs run: what has no path is not executed
	Alone  bool // the box has namespaces of its own: its network, processes and queues are nobody else's
	// Watched says that, all the same, what watches over the command is among its processes,
	// as the same user.
	Watched bool
	// GVisor says that its kernel answers: the queues are those of the commands after it, too,
	// and it lets everybody raise their priority.
	GVisor bool
	// Agent says that somebody listens, who gives the box lines to an agent of ssh and
	// nothing else. Of an Alone box: calls of socket for a stream with a path are left to
	// them, and those calls of connect that may be about the agent's.
	Agent bool
}

const (
	allow   = 0x7fff0000 // SECCOMP_RET_ALLOW
	refuse  = 0x00050000 // SECCOMP_RET_ERRNO
	leave   = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
	offNr   = 0
	offArch = 4
	offArgs = 16 // low half first: both architectures are little-endian
)

// A verdict is what becomes of one call: an action, or conditions on its arguments.
type verdict struct {
	action uint32
	unless [][]cond // refused when all of any one set hold; else allowed
	ask    [][]cond // before that, left to whoever listens when all of any one set hold
}

// looks reports whether it depends on arguments.
func (v verdict) looks() bool { return len(v.unless)+len(v.ask) > 0 }

// made are filters by their Kind: there are few, and each takes a while.
var made sync.Map

// Filter is the filter as the kernel takes it. What it does not know, and what comes by
// way of another architecture, is refused. Nobody may change it.
func Filter(k Kind) ([]unix.SockFilter, error) {
	if f, ok := made.Load(k); ok {
		return f.([]unix.SockFilter), nil
	}
	f, err := filter(k)
	if err == nil {
		made.Store(k, f)
	}
	return f, err
}

func filter(k Kind) ([]unix.SockFilter, error) {
	if len(numbers) == 0 {
		return nil, fmt.Errorf("the system calls of %s are not known to this build: use amd64 or arm64", runtime.GOARCH)
	}
	var spans []span
	for nr, v := range append(verdicts(k), verdict{action: unknown}) {
		if n := len(spans); n == 0 || v.looks() || spans[n-1].is.looks() || spans[n-1].is.action != v.action {
			spans = append(spans, span{nr, v})
		}
	}
	a := assembler{}
	a.add(bpf.LoadAbsolute{Off: offArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: own, SkipTrue: 1}, bpf.RetConstant{Val: refuse | uint32(unix.EPERM)},
		bpf.LoadAbsolute{Off: offNr, Size: 4})
	a.search(spans)
	return a.encode()
}

// unknown calls are answered as an older kernel would.
const unknown = refuse | uint32(unix.ENOSYS)

// A span is numbers from one on that are treated alike.
type span struct {
	from int
	is   verdict
}

type assembler struct{ code []bpf.Instruction }

func (a *assembler) add(code ...bpf.Instruction) { a.code = append(a.code, code...) }

// search goes to the span that the number is in, by halves.
func (a *assembler) search(spans []span) {
	if len(spans) == 1 {
		a.decide(spans[0].is)
		return
	}
	mid := len(spans) / 2
	var low, high assembler
	low.search(spans[:mid])
	high.search(spans[mid:])
	if len(low.code) <= 255 {
		a.add(bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(spans[mid].from), SkipTrue: uint8(len(low.code))})
	} else { // a conditional jump reaches no further
		a.add(bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(spans[mid].from), SkipFalse: 1}, bpf.Jump{Skip: uint32(len(low.code))})
	}
	a.add(low.code...)
	a.add(high.code...)
}

// decide ends the filter for one call.
func (a *assembler) decide(v verdict) {
	if !v.looks() {
		a.add(bpf.RetConstant{Val: v.action})
		return
	}
	a.when(v.ask, leave)
	a.when(v.unless, refuse|uint32(unix.EPERM))
	a.add(bpf.RetConstant{Val: allow})
}

// when ends it with an action where all conditions of any one set hold.
func (a *assembler) when(sets [][]cond, action uint32) {
	for _, set := range sets {
		var code []bpf.Instruction
		for i := len(set) - 1; i >= 0; i-- { // from the end, since each skips what follows it
			c := set[i]
			rest := uint8(len(code) + 1) // to after the end
			test := []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs + 8*uint32(c.arg), Size: 4}}
			if c.mask != 0 {
				test = append(test, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask})
			}
			code = slices.Concat(test, []bpf.Instruction{bpf.JumpIf{Cond: c.op, Val: c.value, SkipFalse: rest}}, code)
		}
		a.add(code...)
		a.add(bpf.RetConstant{Val: action})
	}
}

func (a *assembler) encode() ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(a.code)
	if err != nil {
		return nil, err
	}
	if len(raw) > 4096 {
		return nil, fmt.Errorf("a filter of %d steps is too long for the kernel", len(raw))
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}
