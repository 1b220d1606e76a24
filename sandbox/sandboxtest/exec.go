package sandboxtest

import (
	"path/filepath"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
)

func testExec(t *testing.T, d sandbox.Driver) {
	listed := func(w *world) writ.Confinement {
		c := w.confinement()
		c.Exec = writ.Exec{Mode: writ.ExecListed, Files: []string{real(t, "cat"), real(t, "cp"), real(t, "chmod")}}
		return c
	}
	loader := loaderPath()
	rows := []row{
		{"unlisted", `cat file`, `id`},
		{"absolute", `/usr/bin/cat file`, `/usr/bin/id`},
		{"in an exec", `(exec cat file)`, `(exec id)`},
		{"copied into the workspace", `cp $(command -v cat) c; chmod 755 c`, `cp /usr/bin/cat c; chmod 755 c; ./c file`},
		{"copied into /tmp", `cp $(command -v cat) /tmp/ct`, `cp /usr/bin/cat /tmp/c; chmod 755 /tmp/c; /tmp/c file`},
		{"copied into /dev/shm", `cat file`, `cp /usr/bin/cat /dev/shm/c; chmod 755 /dev/shm/c; /dev/shm/c file`},
		{"script in the workspace", `cat file`, `printf '#!/usr/bin/echo\n' >s; chmod 755 s; ./s`},
		{"renamed by a link", `cat file`, `ln -s /usr/bin/id l; ./l`},
	}
	if loader != "" {
		rows = append(rows,
			row{"through the loader", loader + ` /usr/bin/cat file`, loader + ` /usr/bin/id`},
			row{"a copy through the loader", loader + ` /usr/bin/cat file`, `cp /usr/bin/cat c; ` + loader + ` ./c file`},
			row{"a copy in /tmp through the loader", loader + ` /usr/bin/cat file`, `cp /usr/bin/cat /tmp/cl; ` + loader + ` /tmp/cl file`})
	}
	runRows(t, d, rows, listed, nil)

	whole := func(w *world) writ.Confinement {
		c := listed(w)
		c.Read = []string{"/"}
		return c
	}
	if loader != "" {
		runRows(t, d, []row{{"through the loader with all readable", loader + ` /usr/bin/cat file`, loader + ` /usr/bin/id`}}, whole, nil)
	}
	none := func(w *world) writ.Confinement {
		c := w.confinement()
		c.Exec = writ.Exec{}
		return c
	}
	runRows(t, d, []row{
		{"none: another program", `echo only a builtin`, `cat file`},
		{"none: itself is the command", `bash -c 'echo again'`, `/usr/bin/env`},
	}, none, nil)
	t.Run("python, memory", func(t *testing.T) { testExecMemory(t, d) })
}

// testExecMemory runs a program that has no path.
func testExecMemory(t *testing.T, d sandbox.Driver) {
	w := newWorld(t)
	c := w.confinement()
	c.Exec = writ.Exec{Mode: writ.ExecListed, Files: []string{real(t, "python3"), real(t, "cat")}}
	const script = prelude + `py "
b=open('/usr/bin/cat','rb').read()
fd=os.memfd_create('x',0)
os.write(fd,b)
os.execve(fd,['cat','file'],{})"`
	if o := w.bash(t, d, c, script); o.Error != nil || o.Exit.Code == 0 {
		t.Errorf("a program in memory ran: %v\n%s%s", o.Error, o.Out, o.Err)
	}
	c.Exec = writ.Exec{Mode: writ.ExecAny}
	if o := w.bash(t, d, c, script); o.Error != nil || o.Out != "mine\n" {
		t.Errorf("inconclusive: it does not run with all programs allowed: %v\n%s%s", o.Error, o.Out, o.Err)
	}
}

// real is the file that a program's name leads to.
func real(t testing.TB, name string) string {
	t.Helper()
	need.Programs(t, name)
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} {
		if path, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not where it was", name)
	return ""
}

// loaderPath is the ELF loader, if there is one.
func loaderPath() string {
	for _, pattern := range []string{"/lib64/ld-linux*.so.*", "/lib/ld-linux*.so.*", "/lib/ld-musl*.so.*"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
