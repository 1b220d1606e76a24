package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

const argvDigest = "304ff6a4f9ee37922af342e257230b7eafbdd318b360caca1255db4338dac259"

// unconfined is a request to write a command down, as the command line makes it.
const unconfined = `{"user":"alice","uid":1000,"program":"/bin/sh","argv_sha256":"` + argvDigest + `","args":3,"args_bytes":17,"directory":"/srv"}`

// said lists what the ledger has of one id: kind and data.
func (w *world) said(id string) (out []string) {
	w.t.Helper()
	entries, err := w.operator.LedgerCall(id).All(w.t.Context())
	must(w.t, err)
	for _, e := range entries {
		_, data, _ := strings.Cut(string(e.Body), `"data":`)
		data, rest, _ := strings.Cut(data, `,"kind":"`)
		kind, _, _ := strings.Cut(rest, `"`)
		out = append(out, kind+" "+data)
	}
	return out
}

// A command is written down when it starts and when it ends, each once.
func TestUnconfined(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		end  client.UnconfinedEnd
		want string
	}{
		{client.UnconfinedEnd{}, `{"exit_code":0,"outcome":"exited","signal":0}`},
		{client.UnconfinedEnd{ExitCode: 7}, `{"exit_code":7,"outcome":"exited","signal":0}`},
		{client.UnconfinedEnd{ExitCode: 137, Signal: 9}, `{"exit_code":137,"outcome":"signalled","signal":9}`},
		{client.UnconfinedEnd{ExitCode: 125, NotStarted: true}, `{"exit_code":125,"outcome":"not_started","signal":0}`},
	} {
		made, err := w.operator.StartUnconfined(t.Context(), client.UnconfinedRequest{User: "alice", UID: 1000, Program: "/bin/sh", Argv: argvDigest, Args: 3, Bytes: 17, Dir: "/srv"})
		must(t, err)
		started := `unconfined.started {"args":3,"args_bytes":17,"argv_sha256":"` + argvDigest + `","directory":"/srv","program":"/bin/sh","uid":1000,"user":"alice"}`
		if diff := cmp.Diff([]string{started}, w.said(made.ID)); diff != "" {
			t.Error(diff)
		}
		must(t, w.operator.EndUnconfined(t.Context(), made.ID, tc.end))
		w.refused(ask{operatorDoor, "", "POST", "/v1/unconfined/" + made.ID + "/end", nil, `{"exit_code":0}`}, 409, writ.Conflict,
			"the end of this command is recorded already; 'writ ledger show "+made.ID+"' shows it")
		if diff := cmp.Diff([]string{started, "unconfined.ended " + tc.want}, w.said(made.ID)); diff != "" {
			t.Error(diff)
		}
	}
}

// What would not say who ran what is not recorded, so it is not run.
func TestUnconfinedMalformed(t *testing.T) {
	w := newWorld(t)
	call := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})).CallID
	before := w.ledgerLength()
	refuse := func(target, body, detail string) {
		t.Helper()
		w.refused(ask{operatorDoor, "", "POST", target, nil, body}, 400, writ.Invalid, detail)
	}
	for _, tc := range [][3]string{ // what is replaced, by what, and what is said
		{`"alice"`, `""`, "user: use 1 to 4096 bytes of text"},
		{`"/bin/sh"`, `"/bin/\u0000sh"`, "program: use 1 to 4096 bytes of text"},
		{`"/srv"`, `"/` + strings.Repeat("x", 4096) + `"`, "directory: use 1 to 4096 bytes of text"},
		{`"/bin/sh"`, `"sh"`, "program: name the file by its absolute path"},
		{`"/srv"`, `"."`, "directory: name it by its absolute path"},
		{argvDigest, argvDigest[:62], "argv_sha256: write a digest, 64 hexadecimal digits in small letters"},
		{argvDigest, strings.ToUpper(argvDigest), "argv_sha256: write a digest, 64 hexadecimal digits in small letters"},
		{`"uid":1000`, `"uid":-1`, "uid: use the number of a user, 0 to 4294967294"},
		{`"args":3`, `"args":0`, "args, args_bytes: count the command and its arguments, each with the zero byte that ends it"},
		{`"args":3`, `"args":18`, "args, args_bytes: count the command and its arguments, each with the zero byte that ends it"},
		{`"uid":1000,`, ``, `JSON: field "uid" is missing; send it`},
	} {
		refuse("/v1/unconfined", strings.Replace(unconfined, tc[0], tc[1], 1), tc[2])
	}
	for _, body := range []string{`{"exit_code":256}`, `{"exit_code":-1}`, `{"exit_code":0,"signal":128}`, `{"exit_code":0,"signal":-9}`} {
		refuse("/v1/unconfined/unconfined_x/end", body, "exit_code is 0 to 255, signal 0 to 127")
	}
	for _, id := range []string{"unconfined_x", call} { // what a call said is nobody's to go on with
		w.refused(ask{operatorDoor, "", "POST", "/v1/unconfined/" + id + "/end", nil, `{"exit_code":0}`}, 404, writ.NotFound,
			fmt.Sprintf("no command was started unconfined as %q; 'writ ledger tail' shows ids", id))
	}
	if after := w.ledgerLength(); after != before {
		t.Errorf("%d entries became %d", before, after)
	}
	w.ok(ask{operatorDoor, "", "POST", "/v1/unconfined", nil, unconfined})
	if after := w.ledgerLength(); after != before+1 {
		t.Error("inconclusive: a good one is not recorded")
	}
}

// An agent has no way to it, at either door, and sees nothing of it.
func TestUnconfinedIsTheOperators(t *testing.T) {
	w := newWorld(t)
	made := jsonOf[client.Unconfined](t, w.ok(ask{operatorDoor, "", "POST", "/v1/unconfined", nil, unconfined}))
	for target, body := range map[string]string{"/v1/unconfined": unconfined, "/v1/unconfined/" + made.ID + "/end": `{"exit_code":0}`} {
		w.refused(ask{operatorDoor, "coder", "POST", target, nil, body}, 403, writ.Denied, "this is for the operator, and a token makes you its agent; leave the token out")
		w.refused(ask{agentDoor, "coder", "POST", target, nil, body}, 404, writ.NotFound, "there is nothing at this path; GET /v1/openapi.json lists what there is")
	}
	w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})
	for e, err := range w.agent("coder").Events(t.Context(), 0) {
		must(t, err)
		if strings.Contains(string(e.Body), made.ID) {
			t.Errorf("an agent sees %s", e.Body)
		}
		if strings.Contains(string(e.Body), `"kind":"call.finished"`) { // which is later
			break
		}
	}
	if got := w.said(made.ID); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Where nothing can be recorded, there is no id to run under.
func TestUnconfinedUnrecorded(t *testing.T) {
	w := newWorld(t)
	made := jsonOf[client.Unconfined](t, w.ok(ask{operatorDoor, "", "POST", "/v1/unconfined", nil, unconfined}))
	must(t, w.engine.Ledger().Close())
	w.broken = true
	for target, body := range map[string]string{"/v1/unconfined": unconfined, "/v1/unconfined/" + made.ID + "/end": `{"exit_code":0}`} {
		if got := w.ask(ask{operatorDoor, "", "POST", target, nil, body}); got.status != 503 || got.problem.Kind != writ.StoreUnavailable {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}
