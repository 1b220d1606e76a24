//go:build race

package probe

// raceBuild: the race detector maps more address space than any limit allows.
const raceBuild = true
