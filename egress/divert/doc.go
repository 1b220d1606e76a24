// Package divert leads everything that leaves a network namespace to two sockets in it:
// one for TCP, one for questions about names. A program in there needs no settings, and
// has no other way: the namespace has no device but its own loopback, so that what is not
// led here is delivered to nobody.
//
// The namespace is worked on through sockets that were opened in it, so that the process
// which does so neither enters it nor needs root: it has every right in a user namespace
// that its own user made.
package divert
