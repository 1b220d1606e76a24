package native

import (
	"encoding/binary"

	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// kind is the filter of a plan's commands.
func kind(p *reach.Plan) calls.Kind {
	return calls.Kind{Listed: p.Listed, Alone: true, Agent: p.Agent}
}

// locks reports whether the launcher of a box that is used again is under the filter of its
// commands. Where somebody hears what a filter leaves to them, each command has its own.
func locks(p *reach.Plan) bool { return !p.Agent }

// lock puts the launcher of a box under the filter of its commands, which begin with it then:
// to load one takes the kernel longer than all else that a command gives up. What the launcher
// still does for the next one that the filter refuses (mounts, namespaces), it does with a key:
// 64 bits that it makes up, that are nowhere but in its memory and in the kernel's filter, and
// that no command has, since it has other memory and other registers from its first
// instruction on.
func (s *script) lock(p *reach.Plan) error {
	s.doing(stepSeccomp)
	steps, key, err := calls.Locked(kind(p))
	if err != nil {
		return err
	}
	code := s.bytes(encodeSteps(steps))
	for _, half := range key {
		const k = 4 // of a struct sock_filter, of 8 bytes
		s.add(op{Kind: opKey, Args: [6]uint64{code.value + uint64(8*half[0]+k), code.value + uint64(8*half[1]+k)}})
	}
	s.seccomp(s.filterAt(code, len(steps)), 0)
	return nil
}

// filter is a filter as it is handed to the kernel.
func (s *script) filter(steps []unix.SockFilter) arg {
	return s.filterAt(s.bytes(encodeSteps(steps)), len(steps))
}

func (s *script) filterAt(code arg, steps int) arg {
	program := s.bytes(words(uint64(steps), 0)) // struct sock_fprog
	s.pointer(program, 8, code)
	return program
}

func encodeSteps(steps []unix.SockFilter) []byte {
	code := make([]byte, 0, 8*len(steps))
	for _, f := range steps {
		code = binary.NativeEndian.AppendUint32(append(binary.NativeEndian.AppendUint16(code, f.Code), f.Jt, f.Jf), f.K)
	}
	return code
}

func (s *script) seccomp(program arg, flags int) arg {
	return s.call(unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER), num(flags), program)
}
