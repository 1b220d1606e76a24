//go:build !unix

package main

import "os"

// hangup does not exist here; 'writ config reload' does the same.
var hangup os.Signal
