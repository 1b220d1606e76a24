package main

import (
	"net"
	"os/exec"
	"testing"
)

// shellOutside runs a command without any box: the control of a negative test.
func shellOutside(command string) (string, error) {
	out, err := exec.Command("bash", "-c", command).CombinedOutput()
	return string(out), err
}

// startOutside starts a program and returns what ends it.
func startOutside(t testing.TB, name string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(name, args...)
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() { killTree(cmd); cmd.Wait() }
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
