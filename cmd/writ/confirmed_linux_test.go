package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-run/writ/need"
)

// A look is one thing that anybody on the host can see of a process. The same look at a
// process that is not confined shows something else, so it does not pass by seeing nothing.
type look struct {
	name         string
	see          func(pid int) string
	box, control string // regular expressions
}

// What the host sees of a command in a box, of 'writ run' and of a tool's call.
func TestConfirmedFromOutside(t *testing.T) {
	need.Programs(t, "sleep", "nsenter", "ip", "bash")
	need.Root(t) // to look into namespaces
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	canary := filepath.Join(w.home, "outside")
	w.write(canary, "CANARY\n")
	w.write(filepath.Join(w.ws, "inside"), "inside\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	looks := slices.Concat(w.looksAtState(), w.looksAtFiles(canary), looksWithin(canary, l.Addr().(*net.TCPAddr).Port))

	control := w.holding(t, canary, "sleep", "71000")
	w.holding(t, canary, program, "run", "--", "sleep", "71001")
	w.starts("call", "shell_command", "command=exec sleep 71002")
	for name, seconds := range map[string]string{"a command of writ run": "71001", "a call of an agent": "71002"} {
		pid := 0
		waitFor(t, func() bool { pid = sleeper(seconds); return pid != 0 })
		for _, k := range looks {
			if got := k.see(pid); !regexp.MustCompile(k.box).MatchString(got) {
				t.Errorf("%s: %s: %q, want %s", name, k.name, got, k.box)
			}
		}
	}
	for _, k := range looks {
		if got := k.see(control); !regexp.MustCompile(k.control).MatchString(got) {
			t.Errorf("control: %s: %q, want %s", k.name, got, k.control)
		}
	}
}

// holding starts a program in the workspace that inherits a file beside the usual ones.
func (w *world) holding(t *testing.T, path, name string, args ...string) (pid int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = w.env(), w.ws, []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd.Process.Pid
}

// sleeper is the process that sleeps for so long; 0: none does.
func sleeper(seconds string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if b, _ := os.ReadFile(path); string(b) == "sleep\x00"+seconds+"\x00" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// status is a line of /proc/PID/status, its fields with one space between.
func status(pid int, name string) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Join(strings.Fields(rest), " ")
		}
	}
	return "no " + name
}

// looksAtState are at what the kernel keeps of a process.
func (w *world) looksAtState() []look {
	more := func(pid int, name string, count func(string) int) string { // than this process has
		return strconv.Itoa(count(status(pid, name)) - count(status(os.Getpid(), name)))
	}
	limit := func(pid int, name string) string {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		return strings.Join(regexp.MustCompile(`(?m)^` + name + ` +(\S+) +(\S+)`).FindStringSubmatch(string(b))[1:], "/")
	}
	return []look{
		{"user", func(pid int) string {
			return status(pid, "Uid") + ", " + status(pid, "Gid") + ", " + status(pid, "Groups")
		},
			fmt.Sprintf(`^%[1]d %[1]d %[1]d %[1]d, %[1]d %[1]d %[1]d %[1]d, $`, nobody), `^0 0 0 0, `},
		{"capabilities", func(pid int) string {
			return status(pid, "CapInh") + status(pid, "CapPrm") + status(pid, "CapEff") + status(pid, "CapBnd") + status(pid, "CapAmb")
		}, `^0{80}$`, `^0{16}[0-9a-f]*[1-9a-f]`},
		{"no new privileges", func(pid int) string { return status(pid, "NoNewPrivs") }, `^1$`, `^0$`},
		{"filters of system calls", func(pid int) string {
			return more(pid, "Seccomp_filters", func(s string) int { n, _ := strconv.Atoi(s); return n })
		}, `^1$`, `^0$`},
		{"process tables around it", func(pid int) string {
			return more(pid, "NSpid", func(s string) int { return len(strings.Fields(s)) })
		}, `^[12]$`, `^0$`},
		{"namespaces", func(pid int) (out string) {
			for _, name := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
				its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
				ours, _ := os.Readlink("/proc/self/ns/" + name)
				out += fmt.Sprintf("%s %v ", name, err == nil && its != ours)
			}
			return out
		}, `^(\w+ true ){7}$`, `^(\w+ false ){7}$`},
		{"limits", func(pid int) string {
			return limit(pid, "Max core file size") + " " + limit(pid, "Max locked memory") + " " + limit(pid, "Max msgqueue size") + " " + limit(pid, "Max pending signals")
		}, `^0/0 65536/65536 0/0 1024/1024$`, ` [1-9]\d*/[1-9]\d* \d+/\d+$`},
		{"environment", func(pid int) string {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			return fmt.Sprint(err, " ", strings.Contains(string(b), "HOME=/tmp/home\x00"), " ", strings.Contains(string(b), w.token))
		}, `^<nil> true false$`, `^<nil> false true$`},
	}
}

// mounts are the places in a process's view whose options say so.
func mounts(pid int, with func(options []string) bool) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	var out []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); with(strings.Split(f[5], ",")) {
			out = append(out, f[4])
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// looksAtFiles are at what a process sees and holds.
func (w *world) looksAtFiles(canary string) []look {
	within := func(path string) func(int) string {
		return func(pid int) string {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", pid, path))
			return fmt.Sprintf("%.7q %v", b, err)
		}
	}
	without := func(option string) func(int) string {
		return func(pid int) string {
			return mounts(pid, func(has []string) bool { return !slices.Contains(has, option) })
		}
	}
	home, ws := regexp.QuoteMeta(w.home), regexp.QuoteMeta(w.ws)
	const devices = `/dev/full /dev/null /dev/pts /dev/random /dev/tty /dev/urandom /dev/zero`
	return []look{
		{"mounts that can be changed", without("ro"), `^` + devices + ` /proc( ` + home + `/\.cache/writ/build/\w+)? ` + ws + ` /tmp$`, `^/ `},
		{"mounts with set-id programs", without("nosuid"), `^$`, `^/`},
		{"mounts with devices", without("nodev"), `^` + devices + `$`, `^/ `},
		{"a file of the workspace", within(filepath.Join(w.ws, "inside")), `^"inside\\n" <nil>$`, `^"inside\\n" <nil>$`},
		{"a file of the host", within(canary), `^"" .*no such file`, `^"CANARY\\n" <nil>$`},
		{"writ's store", within(w.state("writ.db")), `^"" .*no such file`, `^"SQLite " <nil>$`},
		{"a file of the system that is a secret", within("/etc/shadow"), `^"" .*no such file`, `^"\S.*" <nil>$`},
		{"open files", func(pid int) (out string) {
			all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, path := range all {
				to, _ := os.Readlink(path)
				out += filepath.Base(path) + "=" + to + " "
			}
			return out
		}, `^0=(pipe:\S+|/dev/null) 1=pipe:\S+ 2=pipe:\S+ $`, ` 3=` + regexp.QuoteMeta(canary) + ` $`},
	}
}

// looksWithin are by programs of the host that enter namespaces of the process.
func looksWithin(canary string, port int) []look {
	entering := func(pid int, how string, command string) string {
		args := append([]string{"-t", strconv.Itoa(pid)}, strings.Fields(how)...)
		out, err := exec.Command("nsenter", append(args, "--", "bash", "-c", command)...).CombinedOutput()
		return fmt.Sprintf("%s%v", out, err)
	}
	listens := fmt.Sprintf(`ip -o link | grep -vc ' lo:'; ip route show table all type unicast | grep -vc ' lo '; grep -c '0100007F:%04X 00000000:0000 0A' /proc/net/tcp; true`, port)
	return []look{
		{"network", func(pid int) string { return entering(pid, "-n", listens) }, `^0\n0\n0\n<nil>$`, `\n1\n<nil>$`},
		{"files and processes", func(pid int) string {
			return entering(pid, "-m -p", `[ -w /usr ]; echo $?; cat `+canary+` 2>&1; cat /proc/1/comm; ls -d /proc/`+strconv.Itoa(os.Getpid())+` 2>/dev/null; true`)
		}, `^1\ncat: \S+: No such file or directory\nwrit-box\n<nil>$`, `^0\nCANARY\n\S+\n/proc/\d+\n<nil>$`},
	}
}

// What the command's own process did before it was the command, and how calls are
// answered since: seen by strace, in order. /proc shows no order and no answers.
func TestConfirmedByStrace(t *testing.T) {
	need.Programs(t, "strace", "python3")
	w := newWorld(t, standard, "")
	const names = "landlock_restrict_self,setresuid,capset,seccomp,execve,mount,unshare,process_vm_readv,keyctl,clone3,io_uring_setup"
	const code = "import ctypes, sys; c = ctypes.CDLL(None); [c.syscall(int(n), 0, 0, 0, 0, 0) for n in sys.argv[1:]]"
	python := []string{"/usr/bin/python3", "-c", code}
	for _, n := range []int{unix.SYS_MOUNT, unix.SYS_UNSHARE, unix.SYS_PROCESS_VM_READV, unix.SYS_KEYCTL, unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP} {
		python = append(python, strconv.Itoa(n))
	}
	traced := func(command ...string) (calls []string) {
		t.Helper()
		log := filepath.Join(w.home, "trace")
		cmd := exec.Command("strace", slices.Concat([]string{"-f", "-qq", "-s", "4096", "-e", "trace=" + names, "-e", "signal=none", "-o", log}, command)...)
		cmd.Env, cmd.Dir = w.env(), w.ws
		if out, err := cmd.CombinedOutput(); err != nil {
			need.Lacking(t, "strace cannot trace here: %v\n%s", err, out)
		}
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		pid := regexp.MustCompile(`(?m)^(\d+) +execve\("/usr/bin/python3"`).FindSubmatch(b)
		if pid == nil {
			t.Fatalf("it executed no python3:\n%s", b)
		}
		for _, m := range regexp.MustCompile(`(?m)^`+string(pid[1])+` +(\w+)\(.*\) += (0|-1 \w+|\d+)`).FindAllSubmatch(b, -1) {
			calls = append(calls, string(m[1])+" "+string(m[2]))
		}
		return calls
	}
	want := []string{"mount 0", "mount 0", "mount 0", // /tmp, /proc and /dev/pts
		"landlock_restrict_self 0", "setresuid 0", "capset 0", "seccomp 0", "execve 0",
		"mount -1 EPERM", "unshare -1 EPERM", "process_vm_readv -1 EPERM", "keyctl -1 EPERM", "clone3 -1 ENOSYS", "io_uring_setup -1 ENOSYS"}
	if os.Geteuid() != 0 {
		want = slices.DeleteFunc(want, func(call string) bool { return call == "setresuid 0" })
	}
	if got := traced(append([]string{program, "run", "--"}, python...)...); !slices.Equal(got, want) {
		t.Errorf("in a box:\n%q, want\n%q", got, want)
	}
	got := traced(python...)
	if len(got) != 7 || got[0] != "execve 0" || got[2] != "unshare 0" || got[5] != "clone3 -1 EINVAL" || got[6] != "io_uring_setup -1 EFAULT" {
		t.Errorf("control: %q", got)
	}
	for _, call := range got {
		if os.Geteuid() == 0 && strings.HasSuffix(call, " EPERM") {
			t.Errorf("control: %s", call)
		}
	}
}
