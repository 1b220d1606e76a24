package mounted

import (
	"encoding/binary"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's numbers of mounts are used again as soon as they are free, so that one mount
// can follow another one in its place and look the same. Of each it has a second number that
// is never used again (Linux 6.8), and is asked for that mount by mount.

const (
	allBelowRoot = ^uint64(0) // LSMT_ROOT
	basics       = 2          // STATMOUNT_MNT_BASIC
)

// unique are the lasting numbers of all mounts, by those that mountinfo has.
func unique() (map[string]uint64, error) {
	out := map[string]uint64{}
	ids := make([]uint64, 512)
	for last := uint64(0); ; last = ids[len(ids)-1] {
		n, err := ask(unix.SYS_LISTMOUNT, allBelowRoot, last, unsafe.Pointer(&ids[0]), len(ids))
		if err != nil {
			return nil, err
		}
		for _, id := range ids[:n] {
			var told [512]byte // struct statmount
			_, err := ask(unix.SYS_STATMOUNT, id, basics, unsafe.Pointer(&told), len(told))
			if err == unix.ENOENT {
				continue // it is gone by now
			}
			if err != nil {
				return nil, err
			}
			out[strconv.FormatUint(uint64(binary.NativeEndian.Uint32(told[56:])), 10)] = id
		}
		if n < len(ids) {
			return out, nil
		}
	}
}

// ask is one of the two calls, about a mount.
func ask(call uintptr, id, param uint64, into unsafe.Pointer, room int) (int, error) {
	request := struct {
		size, spare uint32
		id, param   uint64
	}{size: 24, id: id, param: param} // struct mnt_id_req
	n, _, errno := unix.Syscall6(call, uintptr(unsafe.Pointer(&request)), uintptr(into), uintptr(room), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
