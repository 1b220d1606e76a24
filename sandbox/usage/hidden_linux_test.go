package usage_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/usage"
)

// asOther names the command that this program looks at as an ordinary user.
const asOther = "WRIT_TEST_LOOK_AT"

func TestMain(m *testing.M) {
	if script := os.Getenv(asOther); script != "" {
		look(script)
		return
	}
	os.Exit(m.Run())
}

// look runs a script until it has something to say, and tells whether what it uses can be
// counted: as a launcher and what is below it, with all that there is now as launchers, and
// below it alone.
func look(script string) {
	cmd := exec.Command("/bin/bash", "-c", script)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid := cmd.Process.Pid
	_, of := usage.Of(pid)
	known, err := usage.Tree(pid)
	_, all := usage.Of(pid, known...)
	_, below := usage.Below(pid)
	fmt.Println(strings.TrimSpace(line), of == nil, all == nil && err == nil, below == nil)
	in.Close()
	cmd.Wait()
}

// TestHidden: to an ordinary user, only launchers can keep what they use to themselves. They
// are told by where they are: a process can have any name.
func TestHidden(t *testing.T) {
	need.Programs(t, "python3")
	const (
		python = `python3 -c "
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
def ready(): print('ready', flush=True); sys.stdin.read()
`
		hide = "libc.prctl(4, 0)\n" // PR_SET_DUMPABLE
		end  = "ready()\"\n"
		wait = ":" // that bash does not become it
	)
	for _, tc := range []struct{ name, script, want string }{
		{"nothing hidden", python + end + wait, "ready true true true"},
		{"the launcher itself", "exec " + python + hide + end, "ready true true true"},
		{"a child", python + hide + end + wait, "ready false true true"},
		{"a child of a child", "(" + python + hide + end + wait + ")\n" + wait, "ready false true false"},
		{"by the name of a launcher", "(" + python + hide + "libc.prctl(15, b'writ-box')\n" + end + wait + ")\n" + wait, "ready false true false"},
		{"of a file that cannot be read", `d=$(mktemp -d); cp /bin/cat $d; chmod 0111 $d/cat; (echo ready; cat) | ($d/cat; ` + wait + `); rm -r $d`, "ready false true false"},
		{"ended, not waited for", "(" + python + `
pid = os.fork()
if pid == 0: os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
` + end + wait + ")\n" + wait, "ready true true true"},
		{"without its first thread", "(" + python + `
def last():
  while open('/proc/self/stat').read().rsplit(')')[1].split()[0] != 'Z': time.sleep(0.01)
  ready()
  os._exit(0)
threading.Thread(target=last).start()
libc.syscall(` + fmt.Sprint(syscall.SYS_EXIT) + `, 0)"
` + wait + ")\n" + wait, "ready false true false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{asOther + "=" + tc.script, "PATH=/usr/bin:/bin"}
			cmd.Dir = "/"
			if os.Geteuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%q %v, want %q", got, err, tc.want)
			}
		})
	}
}
