package exec

import (
	"strings"
	"testing"
)

// A job that floods its output keeps the end, and says what is missing.
func TestCaptureLimit(t *testing.T) {
	w := newWorld(t)
	id := w.start(t, coder, `head -c 2500000 /dev/zero | tr '\0' x; echo end`)
	w.over(id)
	const end = "[job JOB completed after 0s, exit status 0, 2500004 bytes of output"
	for _, tc := range []struct {
		args m
		want string
	}{
		{nil, "[cut: the last 1000000 of 2500004 bytes]\n" + strings.Repeat("x", 999_996) + "end\n" + end + "]\n"},
		{m{"bytes": 6}, "[cut: the last 6 of 2500004 bytes]\nxxend\n" + end + "]\n"},
		{m{"from": 0, "bytes": 3}, "[cut: bytes 0 to 1500003 are not kept]\nxxx\n" + end + "; go on with from: 1500007]\n"},
		{m{"from": 1500003, "bytes": 3}, "[cut: bytes 1500003 to 1500003 are not kept]\nxxx\n" + end + "; go on with from: 1500007]\n"},
		{m{"from": 1500004, "bytes": 3}, "xxx\n" + end + "; go on with from: 1500007]\n"},
		{m{"from": 2499998}, "xxend\n" + end + "]\n"},
	} {
		if got := w.job(t, coder, "output", id, tc.args); got != tc.want {
			t.Errorf("%v: %d bytes: %.60q … %.120q", tc.args, len(got), got, got[max(0, len(got)-120):])
		}
	}
}
