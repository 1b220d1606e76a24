//go:build !unix

package sandboxtest

import "io/fs"

func owner(fs.FileInfo) string { return "" }
