// Package bwrap is the sandbox driver that leaves the namespaces and mounts of a box to
// bubblewrap, and does the rest itself (package wrapped): Landlock, seccomp, limits,
// mounts without programs, and the supervision of what runs. It is for machines where
// driver native cannot be used, such as builds without its launcher. Linux 6.12 or later,
// unprivileged user namespaces, and a bubblewrap that binds by descriptor: 0.10, or what
// distributions made of older ones for CVE-2024-42472.
//
// What a box sees is what one of driver native sees: the minimal system read-only, what
// the confinement names, bound by descriptor so that nothing swapped in since it was
// resolved is shown, and a /tmp, home, /proc and /dev of its own. When the daemon is
// root, bubblewrap is started as the user of the box, so that root is nobody inside.
//
// The part of this program that becomes the command has CAP_SYS_ADMIN and CAP_SETPCAP in
// the box's own user namespace until it has set what bubblewrap has no option for: mounts
// without programs, and the number of files in /tmp. The command never has any.
//
// What does not hold, and is not claimed: hosts cannot be allowed one by one; memory is
// bounded for each process, not for the box; with a list of programs, a program file below
// /usr/lib can still be run through the ELF loader.
package bwrap
