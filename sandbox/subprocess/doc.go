// Package subprocess is the sandbox driver for machines on which nothing is
// installed: a confined process in the host's own process table. Linux 6.12 or
// later with Landlock, seccomp and, unless the daemon is root, user namespaces.
//
// Each box is two processes before the command: a supervisor that outlives the
// command, kills and reaps whatever it leaves behind and dies with the daemon
// (I14), and a confiner that gives up everything and becomes the command. Both
// are this program again, so a main function calls [Main] first.
//
// What holds, or the box does not start (I5):
//
//   - Files. Reading needs a Landlock grant: Read, Write, and a fixed set of
//     system files that programs need to run. Changing content needs a Landlock
//     grant, and outside Write every mount is read-only, because Landlock says
//     nothing about modes, owners, times and attributes. /tmp, /var/tmp and
//     /dev/shm are the box's own, whatever Read and Write say; roots below them
//     are shown. Hide is mounted over.
//   - Programs. With a list, only listed files, the command and the ELF loader
//     can be executed; the directories of PATH are otherwise unreadable, since
//     the loader runs whatever it can read, and what the box can write is
//     mounted noexec.
//   - Network. No socket of any family can be made.
//   - Processes. Nothing outside can be signalled, traced, or have its limits,
//     scheduling or memory touched.
//   - Privileges. Never uid 0, no capabilities, no_new_privs, no namespaces.
//   - Ends. The whole tree dies with the command, the time limit, and the daemon.
//
// What does not hold, and is not claimed: stat, readlink and access tell whether
// a path outside exists, and how large it is (a private root is for driver
// native); processes outside can be seen in /proc by number; hosts cannot be
// allowed one by one; memory is bounded for each process, not for the box; with
// a list of programs, a program file below /usr/lib can still be run through the
// ELF loader; a hidden file that the host replaces by renaming during a run
// becomes visible if Read covers it, so hide directories; if the supervisor
// itself is killed by the operator or the kernel, only the command dies with it.
package subprocess
