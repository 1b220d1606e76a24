package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The command line is two programs in one directory: the one that people type, which begins
// fast, and the one with everything, which is the daemon too.
const (
	front = "writ"
	whole = "writd"
)

// programs are the paths of the two. The one that people type may have another name.
func programs() (typed, all string, err error) {
	me, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	ending := ""
	if runtime.GOOS == "windows" {
		ending = ".exe"
	}
	all = filepath.Join(filepath.Dir(me), whole+ending)
	if strings.EqualFold(me, all) {
		return filepath.Join(filepath.Dir(me), front+ending), all, nil
	}
	return me, all, nil
}

// here reports whether a program without the engine has the command of these arguments.
func here(args []string) bool {
	switch {
	case len(args) == 0:
		return false
	case args[0] == "--version" || args[0] == "-v":
		return true
	}
	_, ok := (&App{}).commands()[args[0]]
	return ok
}

// handOver has the program with everything do what this one was asked. It returns only where
// that cannot be.
func handOver() error {
	me, err := os.Executable()
	if err != nil {
		return err
	}
	_, all, err := programs()
	if err == nil && (strings.EqualFold(me, all) || same(me, all)) {
		err = errors.New("it is the same program") // and would hand over for ever
	}
	if err == nil {
		err = replaceBy(all)
	}
	return fmt.Errorf("%s cannot be started, to which this is handed over: %w; 'make build' makes both programs: put them into one directory", all, err)
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}
