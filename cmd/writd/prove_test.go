package main

import "testing"

// TestVerdictOf: what is broken, or shows nothing, fails.
func TestVerdictOf(t *testing.T) {
	for _, tc := range []struct {
		name   string
		proofs []proof
		fails  bool
	}{
		{"held", []proof{{Held: 1, Skipped: 2}}, false},
		{"held, and a driver that is not here", []proof{{Held: 1}, {driverState: driverState{Error: "not installed"}}}, false},
		{"broken", []proof{{Held: 1}, {Held: 1, Broken: 1}}, true},
		{"inconclusive", []proof{{Held: 1, Inconclusive: 1}}, true},
		{"nothing", []proof{{Skipped: 1}}, true},
		{"no driver", nil, true},
	} {
		if err := verdictOf(tc.proofs); (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
