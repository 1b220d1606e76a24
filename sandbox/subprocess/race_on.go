//go:build race

package subprocess

// raceBuild: the race detector maps more address space than any limit allows.
const raceBuild = true
