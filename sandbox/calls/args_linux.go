package calls

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A guarded call is refused when all conditions of any one set hold.
type guarded struct {
	name   string
	refuse [][]cond
	ask    [][]cond // the same; then it is left to whoever listens, before anything else
}

// A cond is about one argument. Only its lower half is looked at: these are arguments of
// which the kernel, too, takes no more.
type cond struct {
	arg   int
	op    bpf.JumpTest
	value uint32
	mask  uint32 // the bits that are looked at; 0: all
}

func is(arg int, value uint32) cond         { return cond{arg, bpf.JumpEqual, value, 0} }
func not(arg int, value uint32) cond        { return cond{arg, bpf.JumpNotEqual, value, 0} }
func has(arg int, bits uint32) cond         { return cond{arg, bpf.JumpBitsSet, bits, 0} }
func among(arg int, mask, bits uint32) cond { return cond{arg, bpf.JumpEqual, bits, mask} }

// when is one set of conditions.
func when(all ...cond) [][]cond { return [][]cond{all} }

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME
	setID       = unix.S_ISUID | unix.S_ISGID
	tmpFileBit  = unix.O_TMPFILE &^ unix.O_DIRECTORY
	prioProcess = 0
	ioprioWho   = 1
	rareTypes   = 0xc // all but stream, datagram and raw sockets

	ipv6FlowLabels = 32 // IPV6_FLOWLABEL_MGR
)

// AgentSocket is the path that programs of a box find the agent of ssh by ([Kind.Agent]).
const AgentSocket = "/etc/ssh/agent.sock"

// agentAddress is how long it is as an address; with the zero at its end it is one longer,
// and some say that the whole structure is. No address of a network is as long as either, so
// that connecting to those is nobody's matter but the kernel's.
const agentAddress = 2 + len(AgentSocket)

// guards are the calls that are refused for some arguments.
func guards(k Kind) []guarded {
	calls := []guarded{
		{name: "clone", refuse: when(has(0, newNamespaces))},
		// A pair of datagram (2) or raw (3) sockets can send to any socket that has
		// a name, and get descriptors back; a stream cannot.
		{name: "socketpair", refuse: [][]cond{{not(0, unix.AF_UNIX)}, {has(1, unix.SOCK_DGRAM)}}},
		{name: "personality", refuse: when(not(0, 0), not(0, 0xffffffff))},
		{name: "ioctl", refuse: slices.Concat(when(is(1, unix.TIOCSTI)), when(is(1, unix.TIOCLINUX)), reserving())},
		// A file with a set-id bit lends this user's rights to whoever runs it
		// on the host later.
		{name: "chmod", refuse: when(has(1, setID))},
		{name: "fchmod", refuse: when(has(1, setID))},
		{name: "fchmodat", refuse: when(has(2, setID))},
		{name: "fchmodat2", refuse: when(has(2, setID))},
		{name: "mknod", refuse: when(has(1, setID))},
		{name: "mknodat", refuse: when(has(2, setID))},
		{name: "creat", refuse: when(has(1, setID))},
		{name: "open", refuse: creating(1)},
		{name: "openat", refuse: creating(2)},
		// Limits of another process: what watches over the command may be of the same user,
		// and waits for nothing that it may not.
		{name: "prlimit64", refuse: when(not(0, 0))},
	}
	if !k.Alone {
		calls = append(calls, guarded{name: "sched_setaffinity", refuse: when(not(0, 0))})
	} else {
		// Of the box's own network. A socket with a path can be the host's, whatever
		// the namespace, and its address is in memory, where nobody can look.
		socket := guarded{name: "socket", refuse: [][]cond{
			{not(0, unix.AF_INET), not(0, unix.AF_INET6), not(0, unix.AF_NETLINK)},
			{is(0, unix.AF_NETLINK), not(2, unix.NETLINK_ROUTE)},
			{not(0, unix.AF_NETLINK), has(1, rareTypes)},
			{not(0, unix.AF_NETLINK), has(1, unix.SOCK_STREAM), has(1, unix.SOCK_DGRAM)}, // both bits: raw
			{not(0, unix.AF_NETLINK), not(2, 0), not(2, unix.IPPROTO_TCP), not(2, unix.IPPROTO_UDP)},
		}}
		labels := when(is(1, unix.IPPROTO_IPV6), is(2, ipv6FlowLabels)) // which outlive who made them
		if k.Agent {
			socket.ask = when(is(0, unix.AF_UNIX), among(1, ^uint32(unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), unix.SOCK_STREAM), is(2, 0))
			// A descriptor that is sent to the agent is closed by the daemon, and must not keep it.
			labels = append(labels, []cond{is(1, unix.SOL_SOCKET), is(2, unix.SO_LINGER)})
			calls = append(calls, guarded{name: "connect", ask: [][]cond{{is(2, unix.SizeofSockaddrUnix)}, {is(2, uint32(agentAddress))}, {is(2, uint32(agentAddress)+1)}}})
		}
		calls = append(calls, socket, guarded{name: "setsockopt", refuse: labels})
	}
	if k.Alone && !k.Watched {
		return calls
	}
	priority := [][]cond{{not(0, prioProcess)}, {not(1, 0)}}
	if k.GVisor {
		priority = append(priority, []cond{has(2, 1<<31)}) // below zero
	}
	// Scheduling of other processes of the same user.
	return append(calls,
		guarded{name: "sched_setscheduler", refuse: when(not(0, 0))},
		guarded{name: "sched_setparam", refuse: when(not(0, 0))},
		guarded{name: "sched_setattr", refuse: when(not(0, 0))},
		guarded{name: "setpriority", refuse: priority},
		guarded{name: "ioprio_set", refuse: [][]cond{{not(0, ioprioWho)}, {not(1, 0)}}},
	)
}

// creating refuses a set-id mode where flags, the argument before it, create a
// file; elsewhere the mode is whatever was in the register.
func creating(flags int) [][]cond {
	return [][]cond{
		{has(flags, unix.O_CREAT), has(flags+1, setID)},
		{has(flags, tmpFileBit), has(flags+1, setID)},
	}
}

// reserving refuses the requests that do what fallocate does ([unmeasured]), and the older
// ones of XFS. The size of their argument, which is a part of the number, is another one
// for programs of 32 bits, so only the letter and the number are compared.
func reserving() (sets [][]cond) {
	const letter = 'X' << 8
	for _, nr := range []uint32{
		10, 11, 36, 37, // XFS_IOC_ALLOCSP, FREESP, and with 64 bits
		40, 41, 42, 43, // FS_IOC_RESVSP, UNRESVSP, and with 64 bits
		57, // FS_IOC_ZERO_RANGE
	} {
		sets = append(sets, []cond{among(1, 0xffff, letter|nr)})
	}
	return sets
}
