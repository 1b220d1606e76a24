// Package wrapped is the driver of those that leave the making of namespaces and mounts to
// a program of the system: how such a program is found and started, and this program's own
// part inside the box. Each of them says how its wrapper is told what a box is.
//
// The wrapper starts this program inside, as a supervisor (package supervise). What that
// starts does what wrappers cannot, or cannot all do, before it becomes the command:
// Landlock, mounts without programs, limits, the seccomp filter, and giving up every
// capability. The supervisor stays outside of Landlock's domain, so that nothing of the
// command can signal or read it, and says how the command ended: exactly, unlike the exit
// status of a wrapper. A main function calls [Main] first.
package wrapped
