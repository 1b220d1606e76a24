// Package rig is a Docker Engine for tests: a real one, shared by all test processes of
// this machine, with an image in it. It is kept in the cache of the tests, and stops by
// itself when no test has used it for a while. It needs Linux.
package rig
