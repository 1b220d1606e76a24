package prove

// What the kernel's refusals read like in the C locale. Mechanisms differ: where a root
// is made of binds, what is not in it is not there (enoent); Landlock says eacces, or
// exdev for moving between directories; a read-only mount says erofs; seccomp says eperm.
const (
	eperm   = "Operation not permitted"
	eacces  = "Permission denied"
	enoent  = "No such file or directory"
	erofs   = "Read-only file system"
	exdev   = "Invalid cross-device link"
	enosys  = "Function not implemented"
	enosup  = "Operation not supported"
	ebusy   = "Device or resource busy"
	esrch   = "No such process"
	enxio   = "No such device or address"
	einval  = "Invalid argument"
	efbig   = "File too large"
	emfile  = "Too many open files"
	eagain  = "Resource temporarily unavailable"
	enospc  = "No space left on device"
	erefuse = "Connection refused"
	eunnet  = "Network is unreachable"
	enotty  = "Inappropriate ioctl for device"
	eio     = "Input/output error"
)

// away is how what lies outside is refused.
var away = []string{enoent, eacces}

// unchanged is how changing what lies outside is refused.
var unchanged = []string{enoent, eacces, erofs, eperm, exdev}

// prelude stops a script at its first error and gives it py, which runs Python: call
// makes a system call and ends with the error's text; refused ends well unless the call
// failed with one of the errors named, so that an answer of the kernel behind the filter
// counts as having got through; no ends badly, with a word.
const prelude = `set -e
no() { echo "$@"; exit 1; }
py() { python3 -S -E -c "import os,sys,ctypes,errno
libc=ctypes.CDLL(None,use_errno=True)
def raw(*a):
  return libc.syscall(*[ctypes.c_long(x) if type(x) is int else x for x in a])
def call(*a):
  r=raw(*a)
  if r<0: sys.exit(os.strerror(ctypes.get_errno()))
  return r
def end(code,*said):
  print(*said,flush=True); os._exit(code)
def refused(want,*a):
  r=raw(*a); e=ctypes.get_errno()
  if r>=0: end(0,'it worked and returned',r)
  name=errno.errorcode.get(e,str(e))
  end(1 if name in want.split() else 0,name)
$1"; }
`
