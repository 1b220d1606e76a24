package calls

import (
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// TestAgent: a box with an agent of ssh may what any box may, but have the close of a socket
// wait for somebody. Left to whoever listens are
// streams with a path and a few calls of connect, of which no network's is one.
func TestAgent(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	of := func(k Kind, nr int, args [3]uint32) uint32 { return ask(t, k, uint32(info.ID), uint32(nr), args) }
	with, without := Kind{Alone: true, Agent: true}, Kind{Alone: true}
	socket, connect := info.SyscallNames["socket"], info.SyscallNames["connect"]
	left := 0
	for family := range uint32(48) {
		for kind := range uint32(16) {
			for _, flags := range []uint32{0, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0x100} {
				for protocol := range uint32(3) {
					args := [3]uint32{family, kind | flags, protocol}
					want := of(without, socket, args)
					if family == unix.AF_UNIX && kind == unix.SOCK_STREAM && flags != 0x100 && protocol == 0 {
						want = leave
						left++
					}
					if got := of(with, socket, args); got != want {
						t.Fatalf("socket%v: %#x, want %#x", args, got, want)
					}
				}
			}
		}
	}
	if left != 4 {
		t.Errorf("%d sorts of sockets are left to whoever listens", left)
	}
	for n := range uint32(256) {
		want := uint32(allow)
		if slices.Contains([]uint32{unix.SizeofSockaddrUnix, uint32(agentAddress), uint32(agentAddress) + 1}, n) {
			want = leave
		}
		if got := of(with, connect, [3]uint32{3, 4096, n}); got != want {
			t.Errorf("connect, of length %d: %#x, want %#x", n, got, want)
		}
	}
	for _, n := range []uint32{unix.SizeofSockaddrInet4, unix.SizeofSockaddrInet6, unix.SizeofSockaddrNetlink, 128} {
		if got := of(with, connect, [3]uint32{3, 4096, n}); got != allow {
			t.Errorf("connecting to an address of length %d is left to whoever listens: %#x", n, got)
		}
	}
	for option := range uint32(128) {
		want := uint32(allow)
		if option == unix.SO_LINGER {
			want = refuse | uint32(unix.EPERM)
		}
		if got := of(with, info.SyscallNames["setsockopt"], [3]uint32{3, unix.SOL_SOCKET, option}); got != want {
			t.Errorf("option %d: %#x, want %#x", option, got, want)
		}
	}
	for name, nr := range info.SyscallNames {
		if got, want := of(with, nr, [3]uint32{}), of(without, nr, [3]uint32{}); nr < x32 && got != want {
			t.Errorf("%s: %#x, want %#x", name, got, want)
		}
	}
	if f, err := Filter(with); err != nil || len(f) > 4096 {
		t.Errorf("%d steps, %v", len(f), err)
	}
}
