// Package cgroup limits what all processes of a box use together: memory, and their
// number. The kernel's limits of one process (rlimits) do not add up
// over the processes of a box; a control group's do.
//
// Groups are made below the group that this process is in, of version 1 as it is found
// and of version 2 where a subtree is delegated to this process. Making a group and
// putting a process into it take the kernel up to milliseconds, so both are done ahead of
// time: children inherit the group, and setting its limits is a few writes to files that
// are open already.
//
// What this package does not do: it never moves this process, never changes a group that
// it did not make (except to hand controllers down inside a subtree that is marked as
// delegated), and never touches a leftover that it cannot prove to be its own. A limit
// that cannot be enforced here is an error and not ignored.
package cgroup
