// Package writ holds the nouns of the gate and the one path that runs a call.
//
// Nothing runs without a [Writ], and only [Gate.Do] makes one: after a [Decider]
// allowed the call (or a person agreed to it), and after a [Recorder] wrote down
// durably that it is about to start. Everything that runs a tool, and every
// sandbox driver, takes the Writ as an argument, so "what it may reach" cannot
// disagree with "what was decided".
//
// The package imports the standard library only and does no I/O. Parsing,
// deciding, approving, recording and running live in packages of their own and
// are joined in package engine.
package writ
