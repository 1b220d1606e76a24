// Package wrapped is what drivers share that leave the making of namespaces and mounts
// to a program of the system: how such a program is found and started, and this
// program's own part inside the box.
//
// The wrapper starts this program inside, as a supervisor. The supervisor starts it once
// more, as what becomes the command: that one does what wrappers cannot, or cannot all
// do: Landlock, mounts without programs, limits, the seccomp filter, and giving up every
// capability. The supervisor stays outside of Landlock's domain, so that nothing of the
// command can signal or read it, kills and reaps all that is left behind, and says how
// the command ended: exactly, unlike the exit status of a wrapper. It ends when the
// daemon lets go of it (I14). A main function calls [Main] first.
package wrapped
