//go:build !linux

package wrapped

// Main returns: there are no boxes of this kind on this system.
func Main() {}
