package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// The pages of a long argument, put together, are everything: nobody approves what
// was not shown to them.
func TestArgumentPages(t *testing.T) {
	w := newWorld(t)
	var text strings.Builder
	for n := 0; text.Len() < 300<<10; n++ {
		fmt.Fprintf(&text, "line %d %s\n", n, strings.Repeat("word ", n%97)) // some longer than a row
	}
	id := w.send("coder", text.String())
	page := func(n int) client.Item {
		return jsonOf[client.Item](t, w.ok(ask{operatorDoor, "", "GET", fmt.Sprintf("/v1/approvals/%s/argument?pointer=%s&page=%d", id, url.QueryEscape("/text"), n), nil, ""}))
	}
	first := page(1)
	if first.Pages < 2 || first.Bytes != text.Len() || first.Kind != "string" || !strings.HasPrefix(first.Title, fmt.Sprintf("page 1 of %d, ", first.Pages)) {
		t.Fatalf("%+v", first)
	}
	var whole strings.Builder
	for n := range first.Pages {
		p := page(n + 1)
		if p.Page != n+1 || p.Pages != first.Pages || p.Bytes != text.Len() {
			t.Errorf("page %d: %d of %d, %d bytes", n+1, p.Page, p.Pages, p.Bytes)
		}
		for row := range strings.Lines(p.Text) {
			if _, after, ok := strings.Cut(row, " │ "); ok {
				if whole.Len() > 0 {
					whole.WriteByte('\n')
				}
				whole.WriteString(strings.TrimSuffix(after, "\n"))
			} else if _, after, ok := strings.Cut(row, " ↪ "); ok {
				whole.WriteString(strings.TrimSuffix(after, "\n"))
			} else {
				t.Fatalf("a row without a margin: %q", row)
			}
		}
	}
	if whole.String() != text.String() {
		t.Errorf("%d bytes were put together of %d", whole.Len(), text.Len())
	}
	a := jsonOf[client.Approval](t, w.ok(ask{operatorDoor, "", "GET", "/v1/approvals/" + id, nil, ""}))
	if len(a.Display) != 1 || a.Display[0].Text != first.Text {
		t.Errorf("%d items are shown", len(a.Display))
	}
}

// Nothing in an argument moves a cursor, turns text round or hides, wherever it is
// displayed; what it is instead can be read (A15).
func TestDisplayIsSafe(t *testing.T) {
	w := newWorld(t)
	hostile := "rm \u202egpj.exe\u202c \x1b[2J\x1b[1;1H\u200b\u2066x\u2069\ufeff\u00ad\x07\r\x7f\u0085\u2028\U000e0041"
	id := w.send("coder", hostile)
	safe := func(where, s string) {
		for _, r := range s {
			if r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
				t.Errorf("%s has %U: %q", where, r, s)
			}
		}
	}
	whole := jsonOf[client.Approval](t, w.ok(ask{operatorDoor, "", "GET", "/v1/approvals/" + id, nil, ""}))
	if len(whole.Display) != 1 || whole.Display[0].Bytes != len(hostile) || len(whole.Display[0].Warnings) == 0 {
		t.Fatalf("%+v", whole.Display)
	}
	item := jsonOf[client.Item](t, w.ok(ask{operatorDoor, "", "GET", "/v1/approvals/" + id + "/argument?pointer=%2Ftext", nil, ""}))
	if diff := cmp.Diff(whole.Display[0], item); diff != "" {
		t.Error(diff)
	}
	safe("the text", item.Text)
	safe("a warning", strings.Join(item.Warnings, "\n"))
	for _, want := range []string{"gpj.exe", "rm ", "202E", "200B"} {
		if !strings.Contains(strings.ToUpper(item.Text), strings.ToUpper(want)) {
			t.Errorf("%q does not show %s", item.Text, want)
		}
	}
	for _, a := range jsonOf[client.Page[client.Approval]](t, w.ok(ask{operatorDoor, "", "GET", "/v1/approvals", nil, ""})).Data {
		safe("the list", a.Preview)
	}
	// Control: what the digest binds, and what runs, is what was asked for.
	var args struct{ Text string }
	must(t, json.Unmarshal(whole.Shown.Args, &args))
	if args.Text != hostile {
		t.Errorf("%q is bound", args.Text)
	}
}

// What came of a call is found out by a person, once, in one of three words.
func TestResolution(t *testing.T) {
	w := newWorld(t)
	id, fine := w.send("coder", "lost"), w.send("coder", "fine")
	for _, one := range []string{id, fine} {
		w.decide(one, `"approve":true`)
		w.ended(one)
	}
	resolve := func(id, happened string) ask {
		return ask{operatorDoor, "", "POST", "/v1/invocations/" + id + "/resolution", nil, `{"happened":"` + happened + `","note":"I looked","by":` + by + `}`}
	}
	for _, word := range []string{"maybe", "", "YES"} {
		w.refused(resolve(id, word), 400, writ.Invalid, fmt.Sprintf("happened: %q is none of yes, no, partly", word))
	}
	w.refused(resolve(fine, "yes"), 409, writ.Conflict, fine+" is completed, or was resolved already: only an unknown outcome is resolved, once")
	i := jsonOf[client.Invocation](t, w.ok(resolve(id, "no")))
	if r := i.Resolution; i.Status != "unknown" || r == nil || r.Happened != "no" || r.Note != "I looked" || r.By != "alice" {
		t.Errorf("%+v", i)
	}
	w.refused(resolve(id, "yes"), 409, writ.Conflict, id+" is unknown, or was resolved already: only an unknown outcome is resolved, once")
	if w.sent.Load() != 2 {
		t.Errorf("%d ran", w.sent.Load())
	}
}

// A preview decides anew and changes nothing; what is denied stays denied, whoever
// writes it, and an edit is approved as it was previewed or not at all (A17).
func TestPreview(t *testing.T) {
	w := newWorld(t)
	id := w.pending("coder", "mine")
	w.write("ws/yours", "x")
	at := "/v1/approvals/" + id
	before := w.everything()
	preview := func(args string) ask {
		return ask{operatorDoor, "", "POST", at + "/preview", nil, `{"args":` + args + `}`}
	}
	for args, detail := range map[string]string{
		`{"path":"/etc/passwd"}`:       `denied: argument /path: "/etc/passwd" is outside file_system: project_directory`,
		`{"path":".git/hooks/update"}`: `denied: argument /path: ".git/hooks" is protected and cannot be changed`,
	} {
		w.refused(preview(args), 403, writ.Denied, detail)
		edit := w.decision(id, `"approve":true,"edit":{"args":`+args+`,"digest":"x"}`)
		if got := w.ask(ask{operatorDoor, "", "POST", at + "/decision", nil, edit}); got.status != 403 || got.problem.Kind != writ.Denied {
			t.Errorf("approved so: %d %s", got.status, got.body)
		}
	}
	w.refused(preview(`{"path":"mine"}`), 400, writ.Invalid, "the arguments are as they were; approve the request as it is")
	w.refused(preview(`null`), 400, writ.Invalid, "arguments: the value is not an object at byte 0; send an object")
	w.refused(preview(`{"nonsense":1,"path":"x"}`), 400, writ.Invalid, `delete_file: unknown argument "nonsense"; it takes path`)
	p := jsonOf[client.Approval](t, w.ok(preview(`{"path":"yours"}`)))
	if p.State != "pending" || p.EditOf != id || p.Shown == nil || string(p.Shown.Args) != `{"path":"yours"}` || string(p.Shown.Original) != `{"path":"mine"}` || len(p.Display) != 1 {
		t.Errorf("%+v", p)
	}
	w.refused(ask{operatorDoor, "", "POST", at + "/decision", nil, w.decision(id, `"approve":true,"edit":{"args":{"path":"yours"},"digest":"x"}`)}, 409, writ.Changed,
		"what the edited call would do is not what was shown; look at it again")
	w.refused(ask{operatorDoor, "", "POST", at + "/decision", nil,
		w.decision(id, `"approve":true,"edit":{"args":{"path":"yours"},"digest":"`+p.Digest+`"},"grant":{"uses":1,"seconds":60}`)}, 400, writ.Invalid,
		"edit the arguments or grant more of the same, not both at once")
	for _, more := range []string{`"edit":{"args":{"path":"yours"},"digest":"x"}`, `"grant":{"uses":1,"seconds":60}`} {
		w.refused(ask{operatorDoor, "", "POST", at + "/decision", nil, w.decision(id, `"approve":false,`+more)}, 400, writ.Invalid,
			"edit and grant go with an approval; leave them out to reject")
	}
	for terms, detail := range map[string]string{
		`{"uses":0,"seconds":60}`:                         "uses: a grant is for 1 to 1000 calls",
		`{"seconds":60}`:                                  "uses: a grant is for 1 to 1000 calls",
		`{"uses":1001,"seconds":60}`:                      "uses: a grant is for 1 to 1000 calls",
		`{"uses":1,"seconds":0}`:                          "for: a grant lasts from a second to 7 days",
		`{"uses":1,"seconds":604801}`:                     "for: a grant lasts from a second to 7 days",
		`{"uses":1,"seconds":18446744100}`:                "for: a grant lasts from a second to 7 days", // in nanoseconds more than 64 bits hold
		`{"uses":1,"seconds":-18446744050}`:               "for: a grant lasts from a second to 7 days",
		`{"uses":1,"seconds":9007199254740991}`:           "for: a grant lasts from a second to 7 days",
		`{"uses":1,"seconds":60,"match":{"nothing":"x"}}`: `match: "nothing" is not an argument of this call with a text as its value`,
	} {
		w.refused(ask{operatorDoor, "", "POST", at + "/decision", nil, w.decision(id, `"approve":true,"grant":`+terms)}, 400, writ.Invalid, detail)
	}
	if diff := cmp.Diff(before, w.everything()); diff != "" {
		t.Errorf("something changed: %s", diff)
	}
	if w.exists("mine") != true || w.exists("yours") != true {
		t.Error("something ran")
	}
	made := w.decide(id, `"approve":true,"edit":{"args":{"path":"yours"},"digest":"`+p.Digest+`"}`)
	if i := w.ended(made.ID); i.Status != "completed" || w.exists("yours") || !w.exists("mine") {
		t.Errorf("%+v", i)
	}
}
