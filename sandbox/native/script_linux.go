package native

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// A script is what the launcher does: system calls, one after the other. The first one
// that fails ends it. Arguments are numbers, data that the script brings, results of
// earlier calls, what they left in data, and descriptors passed along.
type script struct {
	ops    []op
	steps  []string // what each op is for, for whoever reads of its failure
	data   []byte
	relocs []uint32
	step   string
}

// An op is one step, laid out as the launcher reads it (launcher/box.c).
type op struct {
	Kind  uint16
	May   uint16 // an errno that is no failure
	Nr    uint32
	Kinds uint32
	Args  [6]uint64
}

const (
	opCall  = 1
	opStore = 2 // a result goes into data, for a later call
	opInit  = 3 // the process goes on in a child, and looks after it
	opServe = 4 // the process takes requests on another socket from now on
	opKey   = 5 // a number that this process alone knows goes into data, in halves
)

// unlocked are the calls that take the launcher's key as their sixth argument, where it is
// under a filter (calls.Locked). The kernel looks at no such argument of theirs.
var unlocked = []uintptr{unix.SYS_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_OPENAT2}

// An arg is one argument of a call.
type arg struct {
	kind  uint32
	value uint64
}

func num[T ~int | ~int64 | ~uint | ~uint64 | ~uint32 | ~uintptr](n T) arg { return arg{0, uint64(n)} }

// here is the descriptor that stands for the working directory.
var here = num(uint64(1<<64 - 100)) // AT_FDCWD

// bytes is data of the script's own, where the call can also leave something.
func (s *script) bytes(b []byte) arg {
	for len(s.data)%8 != 0 {
		s.data = append(s.data, 0)
	}
	at := len(s.data)
	s.data = append(s.data, b...)
	return arg{1, uint64(at)}
}

func (s *script) text(t string) arg { return s.bytes(append([]byte(t), 0)) }

// texts is a list of texts as execve takes it.
func (s *script) texts(all []string) arg {
	at := make([]arg, len(all))
	for i, t := range all {
		at[i] = s.text(t)
	}
	list := s.bytes(make([]byte, 8*(len(all)+1)))
	for i, a := range at {
		endian.PutUint64(s.data[int(list.value)+8*i:], a.value)
		s.relocs = append(s.relocs, uint32(list.value)+uint32(8*i))
	}
	return list
}

// pointer puts the address of data into other data.
func (s *script) pointer(in arg, offset int, to arg) {
	endian.PutUint64(s.data[int(in.value)+offset:], to.value)
	s.relocs = append(s.relocs, uint32(in.value)+uint32(offset))
}

// passed is one of the descriptors that are passed along when it is sent.
func passed(n int) arg { return arg{3, uint64(n)} }

// held is a number that a call leaves in data.
func held(in arg, offset int) arg { return arg{4, in.value + uint64(offset)} }

// doing names what the next calls are for.
func (s *script) doing(step string) { s.step = step }

// call adds a system call and gives its result.
func (s *script) call(nr uintptr, args ...arg) arg { return s.callMay(0, nr, args...) }

// callMay adds a call of which one errno is no failure.
func (s *script) callMay(may unix.Errno, nr uintptr, args ...arg) arg {
	o := op{Kind: opCall, May: uint16(may), Nr: uint32(nr)}
	for i, a := range args {
		o.Kinds |= a.kind << (4 * i)
		o.Args[i] = a.value
	}
	if slices.Contains(unlocked, nr) {
		o.Kinds |= 5 << (4 * 5)
	}
	return s.add(o)
}

// store puts the result of a call into data.
func (s *script) store(in arg, offset int, result arg) {
	s.add(op{Kind: opStore, Kinds: result.kind << 4, Args: [6]uint64{in.value + uint64(offset), result.value}})
}

func (s *script) init() { s.add(op{Kind: opInit}) }

func (s *script) serve(control arg) {
	s.add(op{Kind: opServe, Kinds: control.kind, Args: [6]uint64{control.value}})
}

func (s *script) add(o op) arg {
	s.ops = append(s.ops, o)
	s.steps = append(s.steps, s.step)
	return arg{2, uint64(len(s.ops) - 1)}
}

// copy is a script that begins alike.
func (s *script) copy() *script {
	return &script{slices.Clone(s.ops), slices.Clone(s.steps), slices.Clone(s.data), slices.Clone(s.relocs), s.step}
}

// A mode is what the launcher does with a script.
type mode uint32

const (
	inPlace mode = 1
	inChild mode = 2
	aside   mode = 3 // in a child that answers by itself
	aBox    mode = 4 // in a box of its own, which answers by itself
)

// A message is a script, ready to be sent.
type message struct {
	script  *script
	encoded []byte
}

// message is the script, ready to be sent as it is now.
func (s *script) message(m mode, clone uint64) (message, error) {
	b, err := s.encode(m, clone, "", "")
	return message{s, b}, err
}

const magic = 0x74697277

const (
	headSize = 40
	opSize   = 64
)

// head is the beginning of a request.
type head struct {
	Magic, Size       uint32
	Ops, Relocs, Data uint32
	Mode              mode
	Clone             uint64
	Map               uint32
}

// encode is the script as a request. maps says who is who in the child's own user
// namespace, where it gets one.
func (s *script) encode(m mode, clone uint64, uidMap, gidMap string) ([]byte, error) {
	h := head{Magic: magic, Ops: uint32(len(s.ops)), Relocs: uint32(len(s.relocs)), Mode: m, Clone: clone}
	if uidMap != "" {
		h.Map = 1 + uint32(s.bytes([]byte(uidMap+"\x00"+gidMap+"\x00")).value)
	}
	at := headSize + len(s.ops)*opSize + 4*len(s.relocs)
	h.Data = uint32(at+7) &^ 7
	h.Size = (h.Data + uint32(len(s.data)) + 7) &^ 7
	if len(s.ops) > 32768 || len(s.relocs) > 65536 || h.Size > 16<<20 {
		return nil, fmt.Errorf("a box of %d steps, %d texts and %d bytes is too large", len(s.ops), len(s.relocs), h.Size)
	}
	out := make([]byte, 0, h.Size)
	out = h.append(out)
	for i := range s.ops {
		out = s.ops[i].append(out)
	}
	for _, r := range s.relocs {
		out = endian.AppendUint32(out, r)
	}
	out = append(out, make([]byte, int(h.Data)-len(out))...)
	out = append(out, s.data...)
	return append(out, make([]byte, int(h.Size)-len(out))...), nil
}

var endian = binary.NativeEndian

func (h *head) append(out []byte) []byte {
	for _, v := range []uint32{h.Magic, h.Size, h.Ops, h.Relocs, h.Data, uint32(h.Mode)} {
		out = endian.AppendUint32(out, v)
	}
	out = endian.AppendUint64(out, h.Clone)
	return endian.AppendUint32(endian.AppendUint32(out, h.Map), 0)
}

func (o *op) append(out []byte) []byte {
	out = endian.AppendUint16(endian.AppendUint16(out, o.Kind), o.May)
	for _, v := range []uint32{o.Nr, o.Kinds, 0} {
		out = endian.AppendUint32(out, v)
	}
	for _, v := range o.Args {
		out = endian.AppendUint64(out, v)
	}
	return out
}

// words are numbers as the kernel has them in memory, one after the other.
func words(all ...uint64) []byte {
	out := make([]byte, 0, 8*len(all))
	for _, v := range all {
		out = endian.AppendUint64(out, v)
	}
	return out
}
