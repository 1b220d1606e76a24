package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/store"
)

// hostile are names that somebody could choose.
var hostile = []string{
	"<!channel>", "<!everyone> now", "<@U123>", "<http://evil.example|writ.example>", "&lt;!here&gt;", "*bold* `code`\n# title", "\u202egnp.exe", "a\x00b\x1b[2J",
	"https://evil.example/approve", "\"}],\"text\":\"forged", strings.Repeat("x", 5000), "\xff\xfe",
}

// Nothing that others chose becomes a link, a mention, a line or a block of a message, and
// nothing makes one longer than a channel takes.
func TestSlackIsWhatItIs(t *testing.T) {
	control := shape(t, Message{Event: asks, Agent: "coder", Tool: "delete_file", Invocation: "call_1", Answer: "writ approval show call_1", Link: "https://writ.example/v1/approvals/call_1"})
	if !strings.Contains(control.Blocks[2].Text.Text, "<https://writ.example/v1/approvals/call_1|") {
		t.Errorf("control: the link is not one: %+v", control.Blocks[2].Text)
	}
	for _, bad := range hostile {
		for _, event := range []string{asks, "tool_invocation_failed"} {
			m := shape(t, Message{Event: event, Agent: bad, Tool: bad, Person: bad, Invocation: "call_1", Answer: "writ approval show call_1", Link: "https://writ.example/v1/approvals/call_1"})
			if len(m.Blocks) != len(control.Blocks) || m.Unfurl || m.Media || len(m.Text) > 2000 {
				t.Errorf("%q makes it another message: %+v", bad, m)
			}
			if strings.ContainsAny(m.Text, "<>\n\x00\x1b\u202e") {
				t.Errorf("%q is not escaped in %q", bad, m.Text)
			}
			for _, f := range m.Blocks[1].Fields {
				if f.Type != "plain_text" || strings.ContainsAny(f.Text, "<>\x00\x1b\u202e") || strings.Count(f.Text, "\n") != 1 || len(f.Text) > 2000 {
					t.Errorf("%q is not escaped in %+v", bad, f)
				}
			}
			if where := m.Blocks[2].Text; where.Text != control.Blocks[2].Text.Text || where.Verbatim == nil || !*where.Verbatim {
				t.Errorf("%q changes where it leads: %+v", bad, where)
			}
		}
	}
}

func shape(t *testing.T, m Message) (out slackMessage) {
	t.Helper()
	b, err := m.slack()
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An entry is told with ids that are the same each time, and with nothing of its data but
// the tool and until when it can be answered.
func TestMessages(t *testing.T) {
	e := store.Entry{Chain: "c", Seq: 7, Kind: "approval.requested", Call: "call_1", Agent: "coder", At: "2026-01-02T00:00:00Z",
		Body: `{"data":{"tool":"<b>","expires":"2026-01-03","args_sha256":"aa","subject":"s3cret"}}`}
	got := messages(e, "")
	if len(got) != 2 || got[0].ID != "evt_c_7_0" || got[1].ID != "evt_c_7_1" || got[1].Event != asks || got[1].Expires != "2026-01-03" || got[1].Link != "" {
		t.Fatalf("%+v", got)
	}
	body, err := got[1].body()
	if want := `{"id":"evt_c_7_1","event":"tool_invocation_approval_required","at":"2026-01-02T00:00:00Z","invocation":"call_1","tool":"\u003cb\u003e","agent":"coder","expires":"2026-01-03","answer":"writ approval show call_1"}`; err != nil || string(body) != want {
		t.Errorf("%s\nwant\n%s (%v)", body, want, err)
	}
	if got := messages(store.Entry{Kind: "egress", Body: "{}"}, ""); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// The signature is that of Standard Webhooks: the example of its specification.
func TestSign(t *testing.T) {
	key, err := Key([]byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`)), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What fails waits longer each time, between a second and an hour, never the same twice.
func TestBackoff(t *testing.T) {
	seen := map[time.Duration]bool{}
	for n := 1; n <= 40; n++ {
		d := backoff(n)
		if d < time.Second || d > time.Hour || n > 12 && d < 30*time.Minute || n == 1 && d > 2*time.Second {
			t.Errorf("after %d: %s", n, d)
		}
		seen[d] = true
	}
	if len(seen) < 30 {
		t.Errorf("only %d different ones", len(seen))
	}
}
