package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/engine"
)

// neighbour is a server with one resource, that says what a test has it say.
type neighbour struct {
	name, uri string
	say       chan string
}

func (n *neighbour) connect(context.Context) (io.ReadCloser, io.WriteCloser, error) {
	from, out := io.Pipe()
	in, to := io.Pipe()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewScanner(in); r.Scan(); {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(r.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			answers := map[string]string{
				"initialize":               `{"protocolVersion":"2025-06-18","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"n","version":"1"}}`,
				"resources/list":           fmt.Sprintf(`{"resources":[{"uri":%q,"name":"r"}]}`, n.uri),
				"resources/templates/list": `{"resourceTemplates":[]}`,
			}
			if a, ok := answers[m.Method]; ok {
				lines <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, a)
			} else {
				lines <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
			}
		}
	}()
	go func() {
		for {
			var line string
			var ok bool
			select {
			case line, ok = <-lines:
			case line, ok = <-n.say:
			}
			if !ok {
				return
			}
			fmt.Fprintln(out, line)
		}
	}()
	return from, to, nil
}

const heldConfig = `version: 1
listen: 127.0.0.1:0
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
agents:
  coder: {workspace: main, level: elevated, autonomy: full, allowed: ["@vic", "@ev"]}
  other: {workspace: main, level: elevated, autonomy: full, denied: ["@vic"]}
`

// opened is an engine with servers of its own.
func opened(t *testing.T, servers ...engine.Server) *engine.Engine {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"ws", "state"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "writ.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(heldConfig, "$DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Options{Config: path, Log: slog.New(slog.DiscardHandler), Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestNewsOfOthers: a server tells of its own resources, to those who may read them.
func TestNewsOfOthers(t *testing.T) {
	vic := &neighbour{"vic", "vic://r", make(chan string)}
	ev := &neighbour{"ev", "ev://r", make(chan string)}
	e := opened(t, engine.Server{Name: "vic", Connect: vic.connect}, engine.Server{Name: "ev", Connect: ev.connect})
	alice := engine.Credentials{Name: "alice", Passphrase: "correct horse battery"}
	if err := e.AddFirstPerson(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	e.Settled(t.Context())
	for _, name := range []string{"vic__read_resource", "ev__read_resource"} {
		d, err := e.DiffTool(name)
		if err == nil {
			err = e.AcceptTool(t.Context(), name, d.Digest, alice)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := New(e, slog.New(slog.DiscardHandler), t.Context().Done())
	all := func(string) bool { return true }
	subs := map[string]*subscriber{}
	for _, agent := range []string{"coder", "other"} {
		subs[agent] = &subscriber{who: engine.Caller{Agent: agent}, in: func() string { return "" }, told: all, wants: map[news]bool{resourceUpdated: true}}
		defer d.hub.add(subs[agent])()
	}
	const updated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`
	said := map[string][]string{"ev": {"vic://r", "ev://r"}, "vic": {"ev://r", "vic://r"}} // another's first
	for _, c := range []struct {
		from  *neighbour
		heard map[string]string
	}{
		{ev, map[string]string{"coder": "ev://r", "other": "ev://r"}},
		{vic, map[string]string{"coder": "vic://r"}},
	} {
		for _, uri := range said[c.from.name] {
			c.from.say <- fmt.Sprintf(updated, uri)
		}
		for agent, want := range c.heard {
			if got := heard(t, subs[agent]); got != want {
				t.Errorf("%s is told of %s by %s, want %s", agent, got, c.from.name, want)
			}
		}
	}
	if more := subs["other"].take(); len(more) != 0 {
		t.Errorf("other is told of what it may not read: %s", more)
	}
}

// heard is the resources that a listener is told of next.
func heard(t *testing.T, s *subscriber) string {
	t.Helper()
	select {
	case <-s.wake:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is told")
	}
	var out []string
	for _, msg := range s.take() {
		m, _ := object(msg)
		p, _ := object(m["params"])
		out = append(out, text(p["uri"]))
	}
	return strings.Join(out, " ")
}

// TestStateOnce: what a server asked is answered once, and not to a daemon that was
// started since.
func TestStateOnce(t *testing.T) {
	e := opened(t)
	d := &Door{engine: e}
	args := json.RawMessage(`{}`)
	x := &exchange{Door: d, who: engine.Caller{Agent: "coder", Token: "tok_a"}, modern: true}
	x.msg.meta = members{metaCapabilities: json.RawMessage(`{"elicitation":{}}`)}
	asked := json.RawMessage(`{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create"}}}`)
	sealed := func() json.RawMessage {
		out, fail := x.relayInput("t", args, asked)
		if fail != nil {
			t.Fatal(fail)
		}
		m, _ := object(out)
		return m["requestState"]
	}
	again := func(d *Door, state json.RawMessage) string {
		y := &exchange{Door: d, who: x.who, modern: true, msg: message{params: members{"requestState": state, "inputResponses": json.RawMessage(`{"k":1}`)}}}
		if _, fail := y.resumed("t", args); fail != nil {
			return fail.Message
		}
		return string(y.inner) + string(y.inputs)
	}
	const over = "requestState was used already, is older than 1h0m0s, or is from before the daemon was restarted; make the call again without it"
	first, second := sealed(), sealed()
	for _, c := range []struct {
		what string
		by   *Door
		with json.RawMessage
		want string
	}{
		{"the first", d, first, `"s"{"k":1}`},
		{"the first again", d, first, over},
		{"the second, elsewhere", &Door{engine: e}, second, over},
		{"the second", d, second, `"s"{"k":1}`},
	} {
		if got := again(c.by, c.with); got != c.want {
			t.Errorf("%s: %s", c.what, got)
		}
	}
	oldest := sealed()
	for range statesOfUser {
		sealed()
	}
	if got := again(d, oldest); got != over || len(d.states.open) > statesOfUser {
		t.Errorf("one too many: %s, %d are open", got, len(d.states.open))
	}
}
