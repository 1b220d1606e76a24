package main

import (
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/egress/lab"
)

// A call that opens ten thousand connections has as many as a call may, and another call
// of the same daemon is served all the while.
func TestFairness(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	w := newWorld(t, "role: developer\nlevel: elevated\noverrides:\n  terminal: full\n", "egress:\n  hosts:\n    read.test:80: {class: read_only}\n").init()
	lab.Names(t, map[string][][]string{"read.test": {{lab.Public}}})
	lab.Web(t, lab.Public+":80", nil)
	call := func(command string) outcome {
		return w.call("shell_command", map[string]any{"command": command, "hosts": []string{"read.test:80"}})
	}
	const one = "curl -sSm 5 http://read.test/"
	if o := call(one); o.code != 0 || !strings.HasPrefix(o.out, "GET read.test at ") {
		t.Fatalf("the control does not get through: %+v", o)
	}
	greedy := make(chan outcome, 1)
	go func() {
		greedy <- call(`cat >greedy.py <<'END'
import socket, time
at = socket.gethostbyname("read.test")
held, refused = [], 0
for i in range(10000):
    s = socket.socket(); s.settimeout(5)
    try:
        s.connect((at, 80)); s.sendall(b"GET / HTTP/1.1\r\nHost: read.test\r\n\r\n")
        if not s.recv(1): raise OSError
        held.append(s)
    except OSError: refused += 1; s.close()
print(len(held), refused)
END
python3 greedy.py`)
	}()
	served := 0
	for {
		select {
		case o := <-greedy:
			if o.code != 0 || o.out != "256 9744\n[not let out: 93.184.216.34:80: too_many]\n" {
				t.Errorf("the greedy one: %+v", o)
			}
			if served < 3 {
				t.Errorf("its neighbour was served %d times meanwhile", served)
			}
			return
		default:
		}
		began := time.Now()
		if o := call("for i in 1 2 3 4 5; do " + one + "; done"); o.code != 0 || strings.Count(o.out, "GET read.test at ") != 5 || time.Since(began) > 15*time.Second {
			t.Fatalf("its neighbour, after %v: %+v", time.Since(began), o)
		}
		served++
	}
}
