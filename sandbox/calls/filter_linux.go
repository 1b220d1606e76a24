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
	// Keyed says that what begins the commands of a box is under the filter with them: calls
	// that only it makes are let through with a key as their sixth argument, which none of
	// them has. See [Locked].
	Keyed bool
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
	keyed  bool     // not refused to who has the key
}

// looks reports whether it depends on arguments.
func (v verdict) looks() bool { return len(v.unless)+len(v.ask) > 0 }

// A program is a filter, and where it asks for the key.
type program struct {
	steps []unix.SockFilter
	key   [][2]int
}

// made are programs by their Kind: there are few, and each takes a while.
var made sync.Map

// Filter is the filter as the kernel takes it. What it does not know, and what comes by
// way of another architecture, is refused. Nobody may change it.
func Filter(k Kind) ([]unix.SockFilter, error) {
	k.Keyed = false
	p, err := programFor(k)
	return p.steps, err
}

// Locked is a Filter with a key, and the steps that hold its low half and its high one, in
// pairs: whoever loads it puts a number there that nobody else can know.
func Locked(k Kind) (steps []unix.SockFilter, key [][2]int, err error) {
	k.Keyed = true
	p, err := programFor(k)
	return p.steps, p.key, err
}

func programFor(k Kind) (program, error) {
	if p, ok := made.Load(k); ok {
		return p.(program), nil
	}
	p, err := filter(k)
	if err == nil {
		made.Store(k, p)
	}
	return p, err
}

func filter(k Kind) (program, error) {
	if len(numbers) == 0 {
		return program{}, fmt.Errorf("the system calls of %s are not known to this build: use amd64 or arm64", runtime.GOARCH)
	}
	var spans []span
	for nr, v := range append(verdicts(k), verdict{action: unknown}) {
		if n := len(spans); n == 0 || v.looks() || spans[n-1].is.looks() || spans[n-1].is.action != v.action || spans[n-1].is.keyed != v.keyed {
			spans = append(spans, span{nr, v})
		}
	}
	a := assembler{rets: map[uint32]label{}, locks: map[uint32]label{}}
	a.search(spans)
	known := a.add(bpf.LoadAbsolute{Off: offNr, Size: 4})
	a.jump(bpf.JumpEqual, own, known, a.end(refuse|uint32(unix.EPERM)))
	a.add(bpf.LoadAbsolute{Off: offArch, Size: 4})
	return a.encode()
}

// unknown calls are answered as an older kernel would.
const unknown = refuse | uint32(unix.ENOSYS)

// A span is numbers from one on that are treated alike.
type span struct {
	from int
	is   verdict
}

// An assembler writes a filter from its end to its beginning: jumps only lead forward, so
// where they lead to is there already. The kernel takes its time for each step, and each
// command has a filter, so ends are shared.
type assembler struct {
	code  []bpf.Instruction // the last one first
	rets  map[uint32]label  // the nearest end with an action
	locks map[uint32]label  // and the nearest that has it unless there is the key,
	keys  [][2]label        // of which the halves are looked at there
}

// A label is an instruction, by its place in code.
type label int

// reach is how far a conditional jump leads.
const reach = 255

func (a *assembler) add(i bpf.Instruction) label {
	a.code = append(a.code, i)
	return label(len(a.code) - 1)
}

// to is the number of instructions between the next one that is added and a label.
func (a *assembler) to(l label) int { return len(a.code) - 1 - int(l) }

// end is where the filter ends with an action.
func (a *assembler) end(action uint32) label {
	l, ok := a.rets[action]
	if !ok || a.to(l) > reach-2 { // two instructions may come before whatever leads here
		l = a.add(bpf.RetConstant{Val: action})
		a.rets[action] = l
	}
	return l
}

// keyArg is the argument that no call uses of those that ask for a key.
const keyArg = offArgs + 8*5

// locked is where the filter ends with an action for whoever has not got the key.
func (a *assembler) locked(action uint32) label {
	l, ok := a.locks[action]
	if ok && a.to(l) <= reach-2 {
		return l
	}
	no, yes := a.end(action), a.end(allow)
	high := a.jump(bpf.JumpEqual, 0, yes, no)
	next := a.add(bpf.LoadAbsolute{Off: keyArg + 4, Size: 4})
	low := a.jump(bpf.JumpEqual, 0, next, no)
	a.keys = append(a.keys, [2]label{low, high})
	a.locks[action] = a.add(bpf.LoadAbsolute{Off: keyArg, Size: 4})
	return a.locks[action]
}

// near is a label that a conditional jump can lead to, from the instruction after next at
// the latest.
func (a *assembler) near(l label) label {
	if a.to(l) > reach-2 {
		return a.add(bpf.Jump{Skip: uint32(a.to(l))})
	}
	return l
}

// jump goes on at one label or at another.
func (a *assembler) jump(op bpf.JumpTest, value uint32, yes, no label) label {
	yes, no = a.near(yes), a.near(no)
	return a.add(bpf.JumpIf{Cond: op, Val: value, SkipTrue: uint8(a.to(yes)), SkipFalse: uint8(a.to(no))})
}

// search goes to the span that the number is in, by halves.
func (a *assembler) search(spans []span) label {
	if len(spans) == 1 {
		return a.decide(spans[0].is)
	}
	mid := len(spans) / 2
	high := a.search(spans[mid:])
	low := a.search(spans[:mid])
	return a.jump(bpf.JumpGreaterOrEqual, uint32(spans[mid].from), high, low)
}

// decide ends the filter for one call.
func (a *assembler) decide(v verdict) label {
	refused := a.end
	if v.keyed {
		refused = a.locked
	}
	if !v.looks() {
		return refused(v.action)
	}
	next := a.when(v.unless, refused, refuse|uint32(unix.EPERM), a.end(v.action))
	return a.when(v.ask, a.end, leave, next)
}

// when ends it, in a way, with an action where all conditions of any one set hold, and goes on where
// they do not.
func (a *assembler) when(sets [][]cond, end func(uint32) label, action uint32, next label) label {
	for i := len(sets) - 1; i >= 0; i-- {
		set := sets[i]
		then, other := end(action), next
		for n := len(set) - 1; n >= 0; n-- {
			c := set[n]
			then = a.jump(c.op, c.value, then, other)
			if n > 0 && set[n-1].looksAt(c) || i > 0 && n == 0 && len(sets[i-1]) == 1 && len(set) == 1 && sets[i-1][0].looksAt(c) {
				continue // the one before has looked there
			}
			if c.mask != 0 {
				a.add(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask})
			}
			then = a.add(bpf.LoadAbsolute{Off: offArgs + 8*uint32(c.arg), Size: 4})
		}
		next = then
	}
	return next
}

// looksAt reports whether two conditions are about the same bits.
func (c cond) looksAt(o cond) bool { return c.arg == o.arg && c.mask == o.mask }

func (a *assembler) encode() (program, error) {
	slices.Reverse(a.code)
	raw, err := bpf.Assemble(a.code)
	if err != nil {
		return program{}, err
	}
	if len(raw) > 4096 {
		return program{}, fmt.Errorf("a filter of %d steps is too long for the kernel", len(raw))
	}
	p := program{steps: make([]unix.SockFilter, len(raw))}
	for i, r := range raw {
		p.steps[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	for _, k := range a.keys {
		p.key = append(p.key, [2]int{len(raw) - 1 - int(k[0]), len(raw) - 1 - int(k[1])})
	}
	return p, nil
}
