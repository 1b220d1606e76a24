package firejail

import "testing"

func TestHomeOf(t *testing.T) {
	const want = "driver firejail takes only users of the password file, and 3999999999 is none; run the daemon as an ordinary user, or use driver native"
	if home, err := homeOf(3999999999); err == nil || err.Error() != want {
		t.Errorf("%q, %v", home, err)
	}
	if home, err := homeOf(0); err != nil || home == "" {
		t.Errorf("inconclusive: %q, %v", home, err)
	}
}
