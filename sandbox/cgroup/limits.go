package cgroup

import "time"

// Limits of all processes of a group together. Zero is no limit of that kind.
type Limits struct {
	Memory int64   // bytes, swap included where the kernel counts it
	Pids   int64   // processes and threads
	CPU    float64 // processors: 0.5 is half of one; at least 0.01
}

// Usage is what the processes of a group have used since Limit was called last. What the
// kernel does not tell is zero.
type Usage struct {
	Memory int64         // most bytes at once; of the group's life where the kernel cannot forget it
	Pids   int64         // most processes and threads at once, of the group's life
	CPU    time.Duration // user and system time
}
