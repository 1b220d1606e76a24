//go:build !unix

package connect

import "os"

// Elsewhere a file's owner comes from its directory, and directories are not synced.
func sameOwner(*os.File, os.FileInfo) error { return nil }

func syncDir(string) error { return nil }
