//go:build race

package restrict

// RaceBuild: the race detector maps more address space than any limit allows.
const RaceBuild = true
