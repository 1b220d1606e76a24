//go:build linux && !amd64

package prove

// architecture has nothing that other architectures have not.
func architecture(refuser) {}

// foreign is about amd64, where one kernel answers to three tables.
func foreign() []Probe { return nil }
