package prove

import "golang.org/x/sys/unix"

// architecture are calls that only this one has.
func architecture(no refuser) {
	no("iopl", unix.SYS_IOPL, "0", denied)
	no("ioperm", unix.SYS_IOPERM, "0,1,0", denied)
	no("modify_ldt", unix.SYS_MODIFY_LDT, "0,0,0", denied)
	no("sysfs", unix.SYS_SYSFS, "3", denied)
	no("uselib", unix.SYS_USELIB, "b'/nowhere-at-all'", absent)
	no("_sysctl", unix.SYS__SYSCTL, "0", absent)
	no("lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, "0,0,0", absent)
	no("nfsservctl", unix.SYS_NFSSERVCTL, "0,0,0", absent)
	no("create_module", unix.SYS_CREATE_MODULE, "b'x',1", absent)
	no("vhangup", unix.SYS_VHANGUP, "0", denied)
}

// machineCode runs bytes in the process: code returns what the call left in rax.
const machineCode = `py "
import mmap
page=mmap.mmap(-1,4096,mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS,mmap.PROT_READ|mmap.PROT_WRITE|mmap.PROT_EXEC)
def code(text):
  page.seek(0); page.write(bytes.fromhex(text))
  return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
def other(text):
  r=code(text)
  if r>=0: end(0,'it worked and returned',r)
  name=errno.errorcode.get(-r,str(r))
  end(1 if name in 'EPERM ENOSYS'.split() else 0,name)
`

// foreign make calls through the tables of other architectures, which a filter that
// knows one of them does not see. A kernel without such a table ends the process.
func foreign() []Probe {
	const native = machineCode + `if code('b8270000000f05c3')!=os.getpid(): end(2,'no')"` // mov eax,39; syscall; ret
	i386 := func(name, nr, b, c, d string) Probe {
		// push rbx; mov eax,nr; mov ebx,b; mov ecx,c; mov edx,d; int 0x80; pop rbx; ret
		return row("other architecture, i386 "+name, native, machineCode+`other('53b8`+nr+`bb`+b+`b9`+c+`ba`+d+`cd805bc3')"`, "EPERM", "ENOSYS", "Bad system call", "Segmentation fault")
	}
	x32 := func(name, nr, a, b, c string) Probe {
		// mov eax,nr; mov edi,a; mov esi,b; mov edx,c; syscall; ret
		return row("other architecture, x32 "+name, native, machineCode+`other('b8`+nr+`bf`+a+`be`+b+`ba`+c+`0f05c3')"`, "EPERM", "ENOSYS", "Bad system call")
	}
	// gVisor has one table: what comes by int 0x80 is a call of this architecture, which the
	// filter sees.
	seen := func(nr string) gvisor { // mov eax,nr; mov edi,0; mov esi,0; mov edx,0; int 0x80; ret
		return gvisor{attack: machineCode + `other('b8` + nr + `bf00000000be00000000ba00000000cd80c3')"`}
	}
	one386 := gvisor{refusal: []string{"one table"}, attack: machineCode + `if code('b827000000cd80c3')!=os.getpid(): end(0,'another table')
end(0 if code('b814000000bfffffffffcd80c3')>=0 else 1,'one table')"`} // getpid is 39, and 20 a write to nothing
	const zero, one, two, minus = "00000000", "01000000", "02000000", "ffffffff"
	return []Probe{
		i386("getpid", "14000000", zero, zero, zero).onGVisor(one386),
		i386("socket", "67010000", two, one, zero),
		i386("ptrace", "1a000000", zero, zero, zero).onGVisor(seen("38010000")), // kcmp: 101 is a call that Linux itself may not have
		i386("unshare", "36010000", zero, zero, zero),
		i386("keyctl", "20010000", zero, minus, zero).onGVisor(seen("fa000000")), // keyctl
		x32("getpid", "27000040", zero, zero, zero),
		x32("socket", "29000040", two, one, zero),
		x32("ptrace", "09020040", zero, zero, zero),
		x32("unshare", "10010040", zero, zero, zero),
	}
}
