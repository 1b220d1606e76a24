//go:build !unix

package engine

import "os"

func openRegular(path string) (*os.File, error) { return os.Open(path) }
