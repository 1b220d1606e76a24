//go:build !linux

package firejail

import "github.com/writ-run/writ/sandbox/wrapped"

var wrapper = wrapped.Wrapper{Name: Name}
