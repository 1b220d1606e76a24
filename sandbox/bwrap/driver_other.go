//go:build !linux

package bwrap

import "github.com/writ-run/writ/sandbox/wrapped"

var wrapper = wrapped.Wrapper{Name: Name}
