package host

import "fmt"

// fail says what is wrong with in and what to write instead.
func fail(what, in, problem string) error {
	return fmt.Errorf("%s %s %s", what, quote(in), problem)
}

// quote keeps hostile input on one line, in ASCII and short: line breaks, terminal
// escapes and look-alikes (the Kelvin sign for K) come out escaped, and a megabyte
// of host does not become a megabyte of log.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		return fmt.Sprintf("%+q...", s[:most])
	}
	return fmt.Sprintf("%+q", s)
}
