package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

// What the machine lacks is followed by what to do about it, and the way without; what is
// about one command is left as it is.
func TestOrUnconfined(t *testing.T) {
	t.Parallel()
	way := "\n  'writ doctor' shows what works here; to run it with nothing confined, which is recorded: writ run --unsafe-unconfined -- COMMAND"
	cause := errors.New("operation not permitted")
	for _, tc := range []struct {
		err  error
		want string // a prefix; the machine's own remedies come between
		all  bool
	}{
		{writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: /x belongs to root; chown it", nil), "sandbox_unavailable: /x belongs to root; chown it", true},
		{writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: no namespaces: operation not permitted", cause), "sandbox_unavailable: no namespaces: operation not permitted\n  ", false},
		{writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: needs Landlock", cause), "sandbox_unavailable: needs Landlock: operation not permitted\n  ", false},
		{writ.Fail(writ.Invalid, "the command cannot be executed", cause), "the command cannot be executed: operation not permitted", true},
		{cause, "operation not permitted", true},
	} {
		got := orUnconfined(tc.err).Error()
		if tc.all && got != tc.want || !strings.HasPrefix(got, tc.want) || !tc.all && (!strings.HasSuffix(got, way) || strings.Count(got, "\n") < 2) {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
