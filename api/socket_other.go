//go:build !linux

package api

import "net"

// ownUserOnly relies on the socket's mode where peers cannot be asked.
type ownUserOnly struct{ net.Listener }
