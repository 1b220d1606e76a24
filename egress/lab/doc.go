// Package lab is a network for tests: a namespace in which addresses that look public are
// this machine's own, with servers on them and a DNS server that answers as it is told.
// Nothing in it reaches anything else. It needs Linux.
package lab
