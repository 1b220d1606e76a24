//go:build !unix

package cli

import (
	"errors"
	"os"
	"os/exec"
)

// replaceBy runs another program in this one's place, and ends as it does.
func replaceBy(program string) error {
	c := exec.Command(program, os.Args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	os.Exit(c.ProcessState.ExitCode())
	return nil
}
