// Package calls makes the seccomp filters of boxes: which system calls a command may
// make, and with which arguments. One filter says all of it, in the fewest steps, since
// the kernel asks it at every call. A filter can leave a few calls to this process
// ([Listener]), which answers them in the kernel's place.
package calls
