//go:build linux

package sandboxtest

// harm is what is not tried without a sandbox, and why.
var harm = map[string]string{
	"tree/fork bomb":         "it would take the machine",
	"limits/temporary names": "it would fill the host's /tmp with names",
}

// honest are groups that show how a command is run and what is refused, which a driver
// that confines nothing can also do right.
var honest = []string{"io", "refuse"}

// unbroken are probes that may hold without a sandbox, and why.
var unbroken = map[string]string{
	"devices/tty":                              "there is no terminal to open when tests run",
	"privileges/a controlling terminal":        "there is no terminal to open when tests run",
	"kernel/_sysctl":                           "this kernel does not have the call",
	"kernel/an unknown call":                   "this kernel does not have the call",
	"kernel/create_module":                     "this kernel does not have the call",
	"kernel/lookup_dcookie":                    "this kernel does not have the call",
	"kernel/nfsservctl":                        "this kernel does not have the call",
	"kernel/uselib":                            "this kernel does not have the call",
	"kernel/other architecture, x32 getpid":    "this kernel does not have the call",
	"kernel/other architecture, x32 ptrace":    "this kernel does not have the call",
	"kernel/other architecture, x32 socket":    "this kernel does not have the call",
	"kernel/other architecture, x32 unshare":   "this kernel does not have the call",
	"knobs/proc/self/gid_map":                  "only a new user namespace has a map to write",
	"knobs/proc/self/uid_map":                  "only a new user namespace has a map to write",
	"knobs/proc/self/oom_score_adj":            "it takes a capability that root has not on every machine",
	"knobs/proc/sys/user/max_user_namespaces":  "it takes a capability that root has not on every machine",
	"knobs/sys/kernel/uevent_helper":           "it takes a capability that root has not on every machine",
	"knobs/sys/devices/system/cpu/cpu0/online": "it takes a capability that root has not on every machine",
	"privileges/capset":                        "it takes a capability that root has not on every machine",
	"privileges/CapAmb":                        "nobody has it unless it was given: root neither",
	"privileges/CapInh":                        "nobody has it unless it was given: root neither",
	"privileges/an ambient capability":         "nobody has it unless it was given: root neither",
	"limits/core files":                        "the host's own limit may be as low",
	"processes/signal the parent":              "the parent is root's without a sandbox",
	"read/proc 1 auxv":                         "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 cwd":                          "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 environ":                      "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 fd":                           "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 maps":                         "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 memory":                       "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 root":                         "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 stack":                        "process 1 is root's, and may be out of root's reach too",
	"read/proc 1 syscall":                      "process 1 is root's, and may be out of root's reach too",
	"read/memory of the kernel":                "not every kernel shows it",
	"write/a program of the system":            "it is root's, and as root it would change the machine",
	"write/bind over":                          "it is root's, and as root it would change the machine",
	"write/rename its parent":                  "it is root's, and as root it would change the machine",
	"write/scheduled jobs":                     "it is root's, and as root it would change the machine",
	"write/the system":                         "it is root's, and as root it would change the machine",
	"write/units of the system":                "it is root's, and as root it would change the machine",
	"exec/renamed by a hard link":              "the kernel lets nobody link to another's program (protected_hardlinks)",
}
