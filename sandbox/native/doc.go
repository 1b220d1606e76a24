// Package native is the sandbox driver that needs nothing but Linux: no program besides
// this one, and no root. Each box has user, mount, process, network, IPC, host name and
// cgroup namespaces of its own.
//
// What it sees is made of binds: the minimal system, read-only, and what the
// confinement names; nothing else is there to be found. On top of that come Landlock, a
// seccomp filter, no capability and no way to one, limits, and a user that is never
// root. It has a /tmp, a home, a /proc and a /dev of its own.
//
// The work is done by a small launcher in C (launcher/box.c), which runs scripts of
// system calls that are written here. One launcher, the factory, prepares the view of
// the system once. Boxes are forked from it ahead of time, so that a call neither makes
// a network namespace nor starts this program again, and each is used once. When the
// daemon goes, its sockets close, and launchers and boxes end with it (I14).
package native
