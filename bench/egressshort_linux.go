package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// The parties of short connections share the processors with the relay, which is what is
// measured. So they are no more than the calls of the kernel that a connection needs, made
// past Go's scheduler: fifty of those that wake up for each call take more time than the
// relay does.

// raw makes one call of the kernel. What interrupts it is only Go's own signals, after which
// the kernel goes on with it. Addresses that it is given stay where they are.
//
//go:uintptrescapes
func raw(what string, trap, a, b, c uintptr) (int, error) {
	n, _, errno := syscall.RawSyscall(trap, a, b, c)
	if errno != 0 {
		return 0, fmt.Errorf("%s: %w", what, errno)
	}
	return int(n), nil
}

// shortServer says back one byte of each connection.
func shortServer() error {
	const threads = 4
	runtime.GOMAXPROCS(threads + 1) // each keeps one for itself
	l, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Bind(l, &syscall.SockaddrInet4{Port: shortPort, Addr: netip.MustParseAddr(there).As4()}), syscall.Listen(l, 1024)); err != nil {
		return err
	}
	debug.SetGCPercent(-1) // it would wait for threads that do not listen
	for range threads {
		go func() {
			var b [1]byte
			for {
				c, err := raw("accept", syscall.SYS_ACCEPT4, uintptr(l), 0, 0)
				if err != nil {
					continue // the one who connected says so
				}
				if n, err := raw("read", syscall.SYS_READ, uintptr(c), uintptr(unsafe.Pointer(&b)), 1); err == nil && n == 1 {
					raw("write", syscall.SYS_WRITE, uintptr(c), uintptr(unsafe.Pointer(&b)), 1)
				}
				raw("close", syscall.SYS_CLOSE, uintptr(c), 0, 0)
			}
		}()
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// short opens connections one after the other for a while, each for a byte there and back.
func short(at string) (n int64, err error) {
	to := syscall.RawSockaddrInet4{Family: syscall.AF_INET, Addr: netip.MustParseAddr(at).As4()}
	to.Port = shortPort<<8 | shortPort>>8 // in the order of the network
	debug.SetGCPercent(-1)
	late := time.AfterFunc(shortFor+20*time.Second, func() { fmt.Println("a connection does not end"); os.Exit(1) })
	defer late.Stop()
	for began := time.Now(); time.Since(began) < shortFor; n++ {
		if err := oneShort(&to); err != nil {
			return n, err
		}
	}
	return n, nil
}

func oneShort(to *syscall.RawSockaddrInet4) error {
	c, err := raw("socket", syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer raw("close", syscall.SYS_CLOSE, uintptr(c), 0, 0)
	if _, err := raw("connect", syscall.SYS_CONNECT, uintptr(c), uintptr(unsafe.Pointer(to)), syscall.SizeofSockaddrInet4); err != nil {
		return err
	}
	b := [1]byte{1}
	if _, err := raw("write", syscall.SYS_WRITE, uintptr(c), uintptr(unsafe.Pointer(&b)), 1); err != nil {
		return err
	}
	n, err := raw("read", syscall.SYS_READ, uintptr(c), uintptr(unsafe.Pointer(&b)), 1)
	if err == nil && n != 1 {
		err = errors.New("read: it ended without an answer")
	}
	return err
}

// many has boxes open short connections, each one after the other, for a while.
func (w *wayOut) many(boxes int) error {
	all := make([]*talker, boxes)
	for i := range all {
		t, err := w.boxedClient()
		if err != nil {
			return err
		}
		defer t.close()
		all[i] = t
	}
	counts, failed := make([]int64, boxes), make([]error, boxes)
	var wg sync.WaitGroup
	before := processorTime()
	for i, t := range all {
		wg.Go(func() { counts[i], failed[i] = t.ask("short") })
	}
	wg.Wait()
	took := processorTime() - before
	var sum int64
	for _, n := range counts {
		sum += n
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	rate := float64(sum) / shortFor.Seconds()
	row(fmt.Sprintf("short connections out of %d boxes, without an error", boxes), fmt.Sprintf("%.0f/s", rate),
		fmt.Sprintf("the least of a box %.0f/s; %v of the relay's processor time each; %s", float64(slices.Min(counts))/shortFor.Seconds(), (took/time.Duration(max(1, sum))).Round(time.Microsecond), goal(rate, false, 3000)))
	return nil
}

// processorTime is what this process has used, in which the relay is. It says more than the
// clock on a machine that others use, too.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
