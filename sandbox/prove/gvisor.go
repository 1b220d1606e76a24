package prove

import (
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/writ-run/writ/sandbox"
)

// A gvisor is how a probe differs where gVisor's kernel answers, for a driver that says so
// (sandbox.GVisor) and for no other: what is a refusal there is none of Linux.
type gvisor struct {
	refusal []string // how that kernel refuses it as well
	lacks   string   // what the control says, since that kernel has nothing to attack
	attack  string   // instead, where Linux says in /proc what that kernel is to be asked for
	without string   // what no box has with that kernel, and nothing demands: it is not tried
	first   bool     // the attack is on process 1, which is the command itself there
}

// noPidfd is for calls that it does not have.
var noPidfd = gvisor{refusal: []string{enosys}}

// onGVisor is the probe with a difference.
func (p Probe) onGVisor(g gvisor) Probe {
	p.gvisor = g
	return p
}

// gvisor is what counts of a probe's difference in this world.
func (w *world) gvisor(x Probe) gvisor {
	if !w.have.Has(sandbox.GVisor) {
		return gvisor{}
	}
	return x.gvisor
}

// lacking reports whether a control failed since there is nothing to attack. The attack is
// tried all the same: it must not work.
func (g gvisor) lacking(o Outcome) bool {
	return g.lacks != "" && o.Error == nil && strings.Contains(o.Out+o.Err, g.lacks)
}

const itself = "process 1 is this one"

// script is the attack. One on process 1 begins with whether that is the command itself, by
// its own number and by what /proc calls it, which could be of another table.
func (g gvisor) script(attack string) string {
	switch {
	case g.attack != "":
		return g.attack
	case g.first:
		return `read -r me _ </proc/self/stat; [ $$ != 1 ] || [ "$me" != 1 ] || no ` + itself + "\n" + attack
	}
	return attack
}

// nobody reports whether the attack was not made since it would be on the command itself.
func (g gvisor) nobody(said string) bool { return g.first && strings.Contains(said, itself) }

// changed is when a file was last changed, which tells it from others where files have
// other numbers than on the host: gVisor gives them its own.
func changed(info fs.FileInfo) string {
	return "c" + strconv.FormatInt(changedAt(info), 10)
}

// numberless has the names in a world tell files by when they were changed, and begins
// scripts with an ls and a stat that do so: those of coreutils 9 ask the kernel with a flag
// (AT_NO_AUTOMOUNT) which gVisor's of 2022 does not know.
func (w *world) numberless() {
	id := func(path string) string {
		info, err := os.Stat(path)
		if err != nil {
			return "none"
		}
		return changed(info)
	}
	w.vars["HOSTFILEID"] = id(w.vars["HOSTFILE"])
	w.vars["PTYDEVS"] = id("/dev/ptmx") + " " + id("/dev/pts/ptmx")
	w.begin = `ls() { python3 -S -E -c 'import os,sys
how="".join(a for a in sys.argv[1:] if a[0]=="-")
code=0
for d in [a for a in sys.argv[1:] if a[0]!="-"] or ["."]:
  try:
    if not os.path.isdir(d): os.lstat(d); print(d); continue
    for n in sorted(os.listdir(d)):
      if n[0]=="." and "A" not in how: continue
      print(*(["c%d" % os.lstat(os.path.join(d,n)).st_ctime_ns] if "i" in how else []),n)
  except OSError as e: print("ls:",d+":",e.strerror,file=sys.stderr); code=2
sys.exit(code)' "$@"; }
stat() { python3 -S -E -c 'import os,sys
try: print("c%d" % (os.stat if "L" in sys.argv[1] else os.lstat)(sys.argv[3]).st_ctime_ns)
except OSError as e: sys.exit("stat: "+sys.argv[3]+": "+e.strerror)' "$@"; }
`
}
