//go:build !unix

package prove

import (
	"errors"
	"io/fs"
	"os/exec"
)

func asBoxUser(*exec.Cmd)          {}
func owner(fs.FileInfo) string     { return "" }
func id(string) string             { return "none" }
func numbered(string) string       { return "" }
func (w *world) fifo(string) error { return errors.ErrUnsupported }
