// Package restrict is what a process of this program does to itself before it becomes the
// command of a box: Landlock's rules, the seccomp filter, limits, and giving up every
// privilege. Nothing of it can be undone. The caller is locked to its thread, which is the
// one that executes the command, and chooses the order: each step needs what a later one
// takes away.
package restrict
