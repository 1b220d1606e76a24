package calls

import (
	"encoding/json"
	"slices"

	"golang.org/x/sys/unix"
)

// spared are what becomes a command still needs: namespaces, mounts over protected names,
// and names opened without following links. Its own filter has them.
var spared = []string{"unshare", "mount", "open_tree", "move_mount", "mount_setattr", "clone3", "openat2"}

// Profile is a filter for a whole container, as engines take it: what nobody in a box has a
// use for. What becomes a command adds its own [Filter], which says far more.
func Profile() (string, error) {
	names := slices.DeleteFunc(slices.Concat(refused, missing), func(name string) bool { return slices.Contains(spared, name) })
	type rule struct {
		Names    []string `json:"names"`
		Action   string   `json:"action"`
		ErrnoRet uint     `json:"errnoRet"`
	}
	b, err := json.Marshal(struct {
		DefaultAction string `json:"defaultAction"`
		Syscalls      []rule `json:"syscalls"`
	}{"SCMP_ACT_ALLOW", []rule{{names, "SCMP_ACT_ERRNO", uint(unix.EPERM)}}})
	return string(b), err
}
