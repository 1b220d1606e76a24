//go:build !linux

package probe

// Verb is the first argument of this program when it is a part of a box.
const Verb = "__box"
