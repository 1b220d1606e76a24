package cgroup

// Limits of all processes of a group together. Zero is no limit of that kind.
type Limits struct {
	Memory int64 // bytes, swap included where the kernel counts it
	Pids   int64 // processes and threads
}
