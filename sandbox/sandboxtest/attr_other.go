//go:build !linux

package sandboxtest

func setAttribute(path, name, value string) {}
