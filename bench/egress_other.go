//go:build !linux

package main

// egress: there is no way out to measure but on Linux.
func egressPart(string, string) error { return nil }

// egressParty: nobody is a party of it.
func egressParty([]string) (bool, error) { return false, nil }
