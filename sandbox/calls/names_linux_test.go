package calls

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilter asks a filter, as the kernel would, about calls and arguments.
func TestFilter(t *testing.T) {
	const no, ok, absent = refuse | uint32(unix.EPERM), allow, unknown
	for _, tt := range []struct {
		what   string
		call   string
		args   [3]uint32
		shared uint32 // in a box that shares the host's namespaces
		alone  uint32
		kept   uint32 // in one that is, where what watches over it and what comes after it are too
	}{
		{"read", "read", [3]uint32{}, ok, ok, ok},
		{"write", "write", [3]uint32{}, ok, ok, ok},
		{"ptrace", "ptrace", [3]uint32{}, no, no, no},
		{"io_uring", "io_uring_setup", [3]uint32{}, absent, absent, absent},
		{"fork", "clone", [3]uint32{17}, ok, ok, ok},
		{"a namespace", "clone", [3]uint32{17 | unix.CLONE_NEWUSER}, no, no, no},
		{"unix", "socket", [3]uint32{unix.AF_UNIX, unix.SOCK_STREAM}, no, no, no},
		{"tcp", "socket", [3]uint32{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, no, ok, ok},
		{"tcp by name", "socket", [3]uint32{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}, no, ok, ok},
		{"udp6", "socket", [3]uint32{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, no, ok, ok},
		{"raw", "socket", [3]uint32{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP}, no, no, no},
		{"sctp", "socket", [3]uint32{unix.AF_INET, unix.SOCK_SEQPACKET}, no, no, no},
		{"mptcp", "socket", [3]uint32{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, no, no, no},
		{"routes", "socket", [3]uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, no, ok, ok},
		{"audit", "socket", [3]uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, no, no, no},
		{"packet", "socket", [3]uint32{unix.AF_PACKET, unix.SOCK_DGRAM}, no, no, no},
		{"vsock", "socket", [3]uint32{unix.AF_VSOCK, unix.SOCK_STREAM}, no, no, no},
		{"stream pair", "socketpair", [3]uint32{unix.AF_UNIX, unix.SOCK_STREAM}, ok, ok, ok},
		{"datagram pair", "socketpair", [3]uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, no, no, no},
		{"typing", "ioctl", [3]uint32{0, unix.TIOCSTI}, no, no, no},
		{"window size", "ioctl", [3]uint32{0, unix.TIOCGWINSZ}, ok, ok, ok},
		{"reserving", "ioctl", [3]uint32{0, 0x40305828}, no, no, no},
		{"reserving, from 32 bits", "ioctl", [3]uint32{0, 0x402c5828}, no, no, no},
		{"giving back", "ioctl", [3]uint32{0, 0x40305829}, no, no, no},
		{"reserving, with 64 bits", "ioctl", [3]uint32{0, 0x4030582a}, no, no, no},
		{"reserving, with 64 bits, from 32", "ioctl", [3]uint32{0, 0x402c582a}, no, no, no},
		{"reserving, any size", "ioctl", [3]uint32{0, 0x582a}, no, no, no},
		{"giving back, with 64 bits", "ioctl", [3]uint32{0, 0x4030582b}, no, no, no},
		{"making zero", "ioctl", [3]uint32{0, 0x40305839}, no, no, no},
		{"reserving, of XFS", "ioctl", [3]uint32{0, 0x4030580a}, no, no, no},
		{"reserving, of XFS, with 64 bits", "ioctl", [3]uint32{0, 0x40305824}, no, no, no},
		{"an attribute of a file", "ioctl", [3]uint32{0, 0x801c581f}, ok, ok, ok}, // FS_IOC_FSGETXATTR, of the same letter
		{"a shared copy", "ioctl", [3]uint32{0, unix.FICLONE}, ok, ok, ok},
		{"watching", "inotify_init1", [3]uint32{}, no, ok, ok},
		{"mode", "fchmodat", [3]uint32{0, 0, 0o755}, ok, ok, ok},
		{"set-uid", "fchmodat", [3]uint32{0, 0, 0o4755}, no, no, no},
		{"personality", "personality", [3]uint32{0xffffffff}, ok, ok, ok},
		{"other personality", "personality", [3]uint32{8}, no, no, no},
		{"queue", "mq_open", [3]uint32{}, no, ok, no},
		{"limits of others", "prlimit64", [3]uint32{5}, no, no, no},
		{"limits of the first", "prlimit64", [3]uint32{1}, no, no, no},
		{"labels that stay", "setsockopt", [3]uint32{3, unix.IPPROTO_IPV6, 32}, ok, no, no},
		{"another option", "setsockopt", [3]uint32{3, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}, ok, ok, ok},
		{"its own limits", "prlimit64", [3]uint32{0}, ok, ok, ok},
		{"processors of a thread", "sched_setaffinity", [3]uint32{5}, no, ok, ok},
		{"turns of others", "sched_setscheduler", [3]uint32{5}, no, ok, no},
		{"a higher priority", "setpriority", [3]uint32{0, 0, 0xfffffffb}, ok, ok, no},
		{"a lower priority", "setpriority", [3]uint32{0, 0, 5}, ok, ok, ok},
		{"shared memory", "shmget", [3]uint32{}, no, ok, no},
	} {
		t.Run(tt.what, func(t *testing.T) {
			info, err := arch.GetInfo("")
			if err != nil {
				t.Fatal(err)
			}
			nr, there := info.SyscallNames[tt.call]
			if !there {
				t.Fatalf("this architecture has no %s", tt.call)
			}
			for k, want := range map[Kind]uint32{{}: tt.shared, {Alone: true}: tt.alone, {Alone: true, Watched: true, GVisor: true}: tt.kept} {
				if got := ask(t, k, uint32(info.ID), uint32(nr), tt.args); got != want {
					t.Errorf("%+v: %#x, want %#x", k, got, want)
				}
				if got := ask(t, k, uint32(info.ID)+1, uint32(nr), tt.args); got != no {
					t.Errorf("of another architecture: %#x", got)
				}
			}
		})
	}
	info, _ := arch.GetInfo("")
	for name, nr := range map[string]uint32{"x32": x32 | 1, "beyond all": 5000, "negative": 0xffffffff} {
		if got := ask(t, Kind{}, uint32(info.ID), nr, [3]uint32{}); got != unknown {
			t.Errorf("%s: %#x", name, got)
		}
	}
}

// TestFilterSaysVerdicts holds filters of all kinds against what they were made from, for
// every call, and for the guarded ones with the arguments that somebody thought of.
func TestFilterSaysVerdicts(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	holds := func(set []cond, args [4]uint32) bool {
		return !slices.ContainsFunc(set, func(c cond) bool {
			v := args[c.arg]
			if c.mask != 0 {
				v &= c.mask
			}
			return !map[bpf.JumpTest]bool{bpf.JumpEqual: v == c.value, bpf.JumpNotEqual: v != c.value, bpf.JumpBitsSet: v&c.value != 0}[c.op]
		})
	}
	any := func(sets [][]cond, args [4]uint32) bool {
		return slices.ContainsFunc(sets, func(set []cond) bool { return holds(set, args) })
	}
	key := uint64(0x1234567890abcdef)
	var theirs []int
	for _, name := range launchers {
		nr, ok := number(name)
		if !ok {
			t.Fatalf("this architecture has no %s", name)
		}
		theirs = append(theirs, nr)
	}
	tried, guarded, keyed, opened := 0, 0, 0, uint32(0)
	for n := range 1 << 5 {
		k := Kind{Listed: n&1 != 0, Alone: n&2 != 0, Watched: n&4 != 0, GVisor: n&8 != 0, Agent: n&16 != 0}
		run, locked := loaded(t, k), lockedWith(t, k, key)
		for nr, v := range append(verdicts(k), verdict{action: unknown}) {
			values := [4][]uint32{{0}, {0}, {0}, {0}}
			for _, c := range slices.Concat(slices.Concat(v.unless...), slices.Concat(v.ask...)) {
				values[c.arg] = append(values[c.arg], c.value, c.value+1, ^c.value, c.value|0xffff0000)
			}
			for _, x := range values[0] {
				for _, y := range values[1] {
					for _, z := range values[2] {
						args := [4]uint32{x, y, z, values[3][tried%len(values[3])]}
						want := v.action
						switch {
						case any(v.ask, args):
							want = leave
						case any(v.unless, args):
							want = refuse | uint32(unix.EPERM)
						}
						if got := run(uint32(info.ID), uint32(nr), args, 0); got != want {
							t.Fatalf("%+v, call %d of %#x: %#x, want %#x", k, nr, args, got, want)
						}
						for _, other := range []uint64{0, key ^ 1, key ^ 1<<32, key << 32, key >> 32, 1<<64 - 1} {
							if got := locked(uint32(info.ID), uint32(nr), args, other); got != want {
								t.Fatalf("%+v, call %d of %#x, without the key (%#x): %#x, want %#x", k, nr, args, other, got, want)
							}
						}
						if want == v.action && v.action == allow || !slices.Contains(theirs, nr) {
							opened = want
						} else {
							opened = allow
							keyed++
						}
						if got := locked(uint32(info.ID), uint32(nr), args, key); got != opened {
							t.Fatalf("%+v, call %d of %#x, with the key: %#x, want %#x", k, nr, args, got, opened)
						}
						tried++
						if want != v.action {
							guarded++
						}
					}
				}
			}
		}
	}
	if tried < 100_000 || guarded < 1000 || keyed < 32*len(launchers) {
		t.Errorf("only %d questions were asked, %d of them about guards and %d about what takes a key", tried, guarded, keyed)
	}
}

// x32 marks calls of the ABI of that name, which nothing here has.
const x32 = 0x40000000

// ask runs a filter.
func ask(t *testing.T, k Kind, id, nr uint32, args [3]uint32) uint32 {
	t.Helper()
	return loaded(t, k)(id, nr, [4]uint32(append(args[:], 0)), 0)
}

// A question is asked of a filter: about a call of an architecture, with its first four
// arguments and its sixth.
type question = func(id, nr uint32, args [4]uint32, sixth uint64) uint32

// loaded is a filter, ready to be asked.
func loaded(t *testing.T, k Kind) question {
	t.Helper()
	code, err := Filter(k)
	if err != nil {
		t.Fatal(err)
	}
	return runs(t, code)
}

// lockedWith is one with a key.
func lockedWith(t *testing.T, k Kind, key uint64) question {
	t.Helper()
	code, places, err := Locked(k)
	if err != nil {
		t.Fatal(err)
	}
	code = slices.Clone(code)
	for _, p := range places {
		code[p[0]].K, code[p[1]].K = uint32(key), uint32(key>>32)
	}
	return runs(t, code)
}

func runs(t *testing.T, code []unix.SockFilter) question {
	t.Helper()
	var raw []bpf.RawInstruction
	for _, c := range code {
		raw = append(raw, bpf.RawInstruction{Op: c.Code, Jt: c.Jt, Jf: c.Jf, K: c.K})
	}
	program, _ := bpf.Disassemble(raw)
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	in := make([]byte, 64) // this reader takes numbers the other way round than seccomp has them
	return func(id, nr uint32, args [4]uint32, sixth uint64) uint32 {
		for _, put := range [][2]uint32{{keyArg, uint32(sixth)}, {keyArg + 4, uint32(sixth >> 32)}, {offNr, nr}, {offArch, id}, {offArgs, args[0]}, {offArgs + 8, args[1]}, {offArgs + 16, args[2]}, {offArgs + 24, args[3]}} {
			binary.BigEndian.PutUint32(in[put[0]:], put[1])
		}
		got, err := vm.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(got)
	}
}

// TestCallNames: a misspelt name would be ignored, and its call allowed.
func TestCallNames(t *testing.T) {
	names := slices.Concat(refused, refusedShared, refusedQueues, unsupported, missing, refusedListed)
	for _, g := range guards(Kind{}) {
		names = append(names, g.name)
	}
	for i, name := range names {
		known := false
		for _, a := range []*arch.Info{arch.X86_64, arch.AARCH64, arch.I386, arch.ARM} {
			_, ok := a.SyscallNames[name]
			known = known || ok
		}
		if !known {
			t.Errorf("no architecture has a call %q", name)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("%q is named twice", name)
		}
	}
}

// TestNumbers holds the table against the library that it was made from.
func TestNumbers(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]int{}, map[string]int{}
	for name, nr := range info.SyscallNames {
		if nr < x32 {
			want[name] = nr
		}
	}
	for _, n := range numbers {
		got[n.name] = int(n.nr)
		if nr, ok := number(n.name); !ok || nr != int(n.nr) {
			t.Errorf("%s is found as %d, %t", n.name, nr, ok)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || own != uint32(info.ID) {
		t.Errorf("run go generate (architecture %#x, want %#x):\n%s", own, info.ID, diff)
	}
	if nr, ok := number("no_such_call"); ok {
		t.Errorf("a call that nobody has is number %d", nr)
	}
}
