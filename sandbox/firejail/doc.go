// Package firejail is the sandbox driver for machines that allow no unprivileged user
// namespaces, but have firejail installed, which is set-user-ID root. Firejail makes the
// namespaces and mounts; package wrapped does the rest. Linux 6.12 or later.
//
// A box sees the host's tree, not one of its own: read-only but for Write, with empty
// temporary directories and a small /dev, and Hide covered. What may be read and executed
// is Landlock's business, as with driver subprocess; processes, network, IPC and host
// name are the box's own. That firejail did what it was told is checked inside, before
// anything of the command begins.
//
// Firejail takes only users that it knows: those of the password file, not nobody, and
// with firejail.users those listed there. A daemon that is root starts it as the owner of
// the workspace.
//
// What does not hold, and is not claimed: hosts cannot be allowed one by one; the box is no
// container, since stat, readlink and access tell whether a path outside exists and how
// large it is; memory is bounded for each process, not for the box; processes are counted
// with those that the user had outside when the box began; temporary files are
// bounded by a watch that ends the box, not by an error; with a list of programs, a program
// file below /usr/lib can still be run through the ELF loader. What firejail cannot be told
// is refused: names with characters that its profiles give a meaning, roots below /var/tmp
// and /dev/shm, listed programs in directories that can be written, and workspaces that
// belong to somebody else than the user of the box.
package firejail
