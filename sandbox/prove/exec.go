package prove

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// execProbes try to run programs that are not listed (group H).
func execProbes() []Probe {
	const ok = `cat file`
	listed := []Probe{
		row("unlisted", ok, `id`, append(away, "command not found")...),
		row("absolute", `/usr/bin/cat file`, `/usr/bin/id`, away...),
		row("in an exec", `(exec cat file)`, `(exec id)`, append(away, "not found")...),
		row("under another name", `(exec -a x cat file)`, `(exec -a cat /usr/bin/id)`, away...),
		row("through env", ok, `/usr/bin/env id`, away...),
		row("copied into the workspace", `cp $(command -v cat) c; chmod 755 c`, `cp /usr/bin/cat c; chmod 755 c; ./c file`, eacces),
		row("copied, found by PATH", `cp $(command -v cat) c; chmod 755 c`, `cp /usr/bin/cat id; chmod 755 id; PATH=$WS:$PATH; id file`, append(away, "command not found")...),
		row("copied into /tmp", `cp $(command -v cat) /tmp/ct`, `cp /usr/bin/cat /tmp/c; chmod 755 /tmp/c; /tmp/c file`, eacces),
		row("copied into the home", `cp $(command -v cat) ~/ct`, `cp /usr/bin/cat ~/c; chmod 755 ~/c; ~/c file`, eacces),
		row("copied into /dev/shm", ok, `cp /usr/bin/cat /dev/shm/c; chmod 755 /dev/shm/c; /dev/shm/c file`, eacces),
		row("copied, by descriptor", ok, `cp /usr/bin/cat c; chmod 755 c; exec 3<c; /proc/self/fd/3 file`, append(away, eperm)...),
		row("script in the workspace", ok, `printf '#!/usr/bin/echo\n' >s; chmod 755 s; ./s`, append(away, "bad interpreter")...),
		row("script of a listed program", ok, `printf '#!/usr/bin/cat\nmine\n' >s; chmod 755 s; ./s`, append(away, "bad interpreter")...),
		row("script in a readable root", ok, `$RO/script`, append(away, "bad interpreter")...),
		row("renamed by a link", ok, `ln -s /usr/bin/id l; ./l`, away...),
		row("renamed by a hard link", `ln file g`, `ln /usr/bin/id l; ./l`, append(away, exdev, eperm)...),
		row("read", `cat /usr/bin/cat >/dev/null`, `cat /usr/bin/id >/dev/null`, away...),
	}
	if ld := loader(); ld != "" {
		listed = append(listed,
			row("through the loader", ld+` /usr/bin/cat file`, ld+` /usr/bin/id`, away...),
			row("a copy through the loader", ld+` /usr/bin/cat file`, `cp /usr/bin/cat c; `+ld+` ./c file`, "failed to map segment", eacces, eperm),
			row("a copy in /tmp through the loader", ld+` /usr/bin/cat file`, `cp /usr/bin/cat /tmp/cl; `+ld+` /tmp/cl file`, "failed to map segment", eacces, eperm))
	}
	listed = group("exec", sandbox.ExecListed, listed, confined(only("cat", "cp", "chmod", "ln")), arranged(script))
	out := append(listed, group("exec", sandbox.ExecListed, inPython(), confined(only("cat", "python3", "cp")))...)
	if ld := loader(); ld != "" {
		readable := only("cat", "cp", "chmod", "ln")
		out = append(out, group("exec", sandbox.ExecListed, []Probe{
			row("through the loader with all readable", ld+` /usr/bin/cat file`, ld+` /usr/bin/id`, away...),
			row("with all readable", ok, `/usr/bin/id`, away...),
		}, confined(func(w *world, c *writ.Confinement) { readable(w, c); c.Read = []string{"/"} }))...)
	}
	return append(out, group("exec", sandbox.ExecListed, []Probe{
		row("none: another program", `echo only a builtin`, `cat file`, append(away, "command not found")...),
		row("none: itself is the command", `bash -c 'echo again'`, `/usr/bin/env`, away...),
		row("none: a script", `bash -c 'echo again'`, `$RO/script`, append(away, "bad interpreter")...),
	}, confined(func(_ *world, c *writ.Confinement) { c.Exec = writ.Exec{} }), arranged(script))...)
}

// inPython are ways that take a program which makes system calls.
func inPython() []Probe {
	const ok = `py "os.posix_spawn('/usr/bin/cat',['cat','file'],{})"; cat file`
	const copied = `cp /usr/bin/cat c; py "os.chmod('c',0o755)
`
	return []Probe{
		row("python, memory", ok, `py "
b=open('/usr/bin/cat','rb').read()
fd=os.memfd_create('x',0)
os.write(fd,b)
os.execve(fd,['cat','file'],{})"`, eperm),
		row("python, memory by proc", ok, `py "
b=open('/usr/bin/cat','rb').read()
fd=os.memfd_create('x',0)
os.write(fd,b)
os.execve(f'/proc/self/fd/{fd}',['cat','file'],{})"`, eperm, eacces),
		row("python, a file without a name", ok, `py "
b=open('/usr/bin/cat','rb').read()
fd=os.open('.',os.O_TMPFILE|os.O_RDWR,0o755)
os.write(fd,b)
os.execve(os.open(f'/proc/self/fd/{fd}',0),['cat','file'],{})"`, eperm, eacces),
		row("python, a copy", ok, copied+`os.execv('./c',['cat','file'])"`, eacces),
		row("python, a copy by descriptor", ok, copied+`os.execve(os.open('c',os.O_PATH),['cat','file'],{})"`, eacces, eperm),
		row("python, a copy in a child", ok, copied+`import subprocess; subprocess.check_call(['./c','file'])"`, eacces),
		row("python, a library in the workspace", `py "ctypes.CDLL('libc.so.6')"`, `py "
path=[l.split()[-1] for l in open('/proc/self/maps') if 'libc' in l][0]
open('x.so','wb').write(open(path,'rb').read())
ctypes.CDLL('./x.so')"`, "failed to map segment", eacces),
		row("python, mapping a copy", ok, `cp /usr/bin/cat c; py "import mmap; mmap.mmap(os.open('c',0),0,mmap.MAP_PRIVATE,mmap.PROT_READ|mmap.PROT_EXEC)"`, eperm, eacces),
	}
}

// only lists programs by name.
func only(names ...string) func(*world, *writ.Confinement) {
	return func(_ *world, c *writ.Confinement) {
		c.Exec = writ.Exec{Mode: writ.ExecListed}
		for _, name := range names {
			c.Exec.Files = append(c.Exec.Files, named(name)...)
		}
	}
}
