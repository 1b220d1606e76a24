//go:build !linux

package protect

import (
	"errors"
	"time"
)

// Options of a Finder.
type Options struct {
	State, Quarantine  string
	MaxDirs, MaxMounts int
	Unwatched          bool
	Linger             time.Duration
}

// Finder is for Linux only.
type Finder struct{}

// New makes none here.
func New(Options) (*Finder, error) {
	return nil, errors.New("protected names are kept by mounts, which need Linux")
}

// Close does nothing.
func (f *Finder) Close() error { return nil }
