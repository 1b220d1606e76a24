package upstream

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// Waiting between two attempts to connect.
const (
	shortestWait = time.Second
	longestWait  = 48 * time.Second // and a quarter of it: a minute
)

// backoff is how long to wait after so many failures in a row, at least one.
func backoff(failures int) time.Duration {
	wait := shortestWait
	for i := 1; i < failures && wait < longestWait; i++ {
		wait *= 2
	}
	return jittered(min(wait, longestWait))
}

// jittered is d and up to a quarter more, so that those who failed together do not
// come back together.
func jittered(d time.Duration) time.Duration {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return d + time.Duration(binary.LittleEndian.Uint64(b[:])%uint64(d/4+1))
}
