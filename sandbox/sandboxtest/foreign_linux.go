package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
)

// foreignSource makes a socket through int 0x80 and through the x32 table, which
// a filter that only knows amd64 does not see, and says what it got.
const foreignSource = `
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(void) {
	long native, i386, x32;
	__asm__ volatile("int $0x80" : "=a"(i386) : "0"(359L), "b"(2L), "c"(1L), "d"(0L) : "memory", "r8", "r9", "r10", "r11");
	__asm__ volatile("syscall" : "=a"(x32) : "0"(0x40000000L | 41), "D"(2L), "S"(1L), "d"(0L) : "rcx", "r11", "memory");
	__asm__ volatile("syscall" : "=a"(native) : "0"((long)SYS_getpid) : "rcx", "r11", "memory");
	printf("i386 %d x32 %d alive %d\n", i386 >= 0, x32 >= 0, native > 0);
	return 0;
}`

func testForeignCalls(t *testing.T, d sandbox.Driver) {
	if runtime.GOARCH != "amd64" {
		t.Skip("amd64 only")
	}
	need.Programs(t, "gcc")
	w := newWorld(t)
	src, bin := filepath.Join(t.TempDir(), "f.c"), filepath.Join(w.ws, "foreign")
	must(t, os.WriteFile(src, []byte(foreignSource), 0o644))
	if out, err := exec.Command("/usr/bin/gcc", "-O1", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil || !strings.Contains(string(out), "i386 1") {
		t.Logf("the kernel has no i386 calls: %s %v", out, err) // then they are refused to begin with
	}
	o := w.bash(t, d, w.confinement(), "./foreign")
	if o.Error != nil || strings.Contains(o.Out, "i386 1") || strings.Contains(o.Out, "x32 1") {
		t.Errorf("a socket was made by another table: %q %v", o.Out, o.Error)
	}
	if o.Exit.Signal == "" && !strings.Contains(o.Out, "alive 1") {
		t.Errorf("inconclusive: %q %q exit %d", o.Out, o.Err, o.Exit.Code)
	}
	t.Logf("outside %q, inside %q %s", out, o.Out, o.Exit.Signal)
}
