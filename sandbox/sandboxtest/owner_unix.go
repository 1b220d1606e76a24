//go:build unix

package sandboxtest

import (
	"fmt"
	"io/fs"
	"syscall"
)

func owner(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(st.Uid, ":", st.Gid)
	}
	return ""
}
