//go:build !unix

package cli

import "os"

// passedOn are the signals that are meant for the command that runs here.
var passedOn = []os.Signal{os.Interrupt}
