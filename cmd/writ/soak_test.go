package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/need"
)

// kill -9 at a random point of a thousand concurrent mixed calls, twenty times
// (make soak; twice with two hundred otherwise). Afterwards the ledger verifies, no
// call ran twice, none ran unrecorded, no counter is lost, and no process is left.
func TestSoakMixed(t *testing.T) {
	need.Programs(t, "python3", "tee", "bash", "sleep")
	rounds, calls := 2, 200
	if os.Getenv("WRIT_SOAK") != "" {
		rounds, calls = 20, 1000
	}
	quota := rounds * calls / 4 // half of the lines that are asked for
	w := newWorld(t, "level: elevated\nautonomy: full\noverrides: {requires_approval: [\"code:delete\"]}\n",
		fmt.Sprintf("tools:\n  append_line: {max_invocations: %d/24h}\n", quota))
	w.place("tools/append_line.yaml", appendTool)
	w.init()
	w.must(pass+"\n", "tool", "accept", "append_line", "--passphrase-stdin")
	tokens := []string{w.token}
	for range 7 { // one token may have 128 calls under way
		var made struct{ Token string }
		w.decode(&made, pass+"\n", "agent", "token", "coder", "--passphrase-stdin")
		tokens = append(tokens, made.Token)
	}
	w.must("", "serve", "--stop")
	w.daemonGone()
	marker := fmt.Sprintf("writ-soak-%d", os.Getpid())
	var told tally
	for round := range rounds {
		_, kill := w.serve()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var all sync.WaitGroup
		for i := range calls {
			c := client.Dial(w.state())
			c.Token = tokens[i%len(tokens)]
			all.Go(func() { told.add(mixed(ctx, c, fmt.Sprintf("%d-%d", round, i), i, marker)) })
		}
		if round == 0 { // so that something happens, however busy the machine is
			w.eventually("a line is written", func() bool {
				logs, _ := filepath.Glob(filepath.Join(w.ws, "log-*"))
				return slices.ContainsFunc(logs, func(path string) bool { return readAll(path) != "" })
			})
		}
		time.Sleep(time.Duration(50+random(uint64(calls)*12)) * time.Millisecond)
		kill()
		cancel()
		all.Wait()
		waitFor(t, func() bool { return !processExists(marker) })
	}
	w.verifies()
	w.checkEffects(w.ledgerCalls(), quota)
	t.Logf("%d rounds of %d calls: %s", rounds, calls, told.String())
}

func random(n uint64) uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) % n
}

// tally counts what callers were told.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[what]++
}

func (t *tally) String() string { return fmt.Sprint(t.n) }

// mixed makes one call or batch, again while the daemon has no room for it.
func mixed(ctx context.Context, c *client.Client, id string, i int, marker string) string {
	line := map[string]any{"file": fmt.Sprintf("log-%d", i%7), "line": id + "\n"}
	file := map[string]any{"path": "f-" + id, "content": id}
	for {
		var err error
		switch i % 10 {
		case 0, 1, 2, 3:
			_, err = c.Call(ctx, client.CallRequest{Tool: "append_line", Args: encode(line), Task: fmt.Sprint("t", i%5)}, 0)
		case 4, 5:
			_, err = c.Call(ctx, client.CallRequest{Tool: "write_file", Args: encode(file)}, 0)
		case 6:
			_, err = c.Call(ctx, client.CallRequest{Tool: "list_directory"}, 0)
		case 7:
			_, err = c.Batch(ctx, client.BatchRequest{Calls: []client.BatchCall{{Tool: "write_file", Args: encode(file)}, {Tool: "append_line", Args: encode(line)}, {Tool: "list_directory"}}}, 0)
		case 8:
			_, err = c.Call(ctx, client.CallRequest{Tool: "shell_command", Args: encode(map[string]any{
				"background": true, "command": fmt.Sprintf("(setsid bash -c 'exec -a %s sleep 90' &); exec -a %s sleep 90", marker, marker)})}, 0)
		default:
			_, err = c.Call(ctx, client.CallRequest{Tool: "delete_file", Args: encode(map[string]any{"path": "f-" + id})}, 0)
		}
		var p *client.Problem
		switch {
		case err == nil:
			return "ok"
		case !errors.As(err, &p):
			return "cut off"
		case p.Kind != "conflict" || i%10 >= 8:
			return string(p.Kind)
		}
		select {
		case <-ctx.Done():
			return "cut off"
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// recorded is what the ledger says of calls.
type recorded struct {
	started, finished map[string]int  // by call
	args              map[string]bool // tool and digest of the arguments of started calls
	appends           int             // started calls of append_line
}

func (w *world) ledgerCalls() recorded {
	w.t.Helper()
	r := recorded{map[string]int{}, map[string]int{}, map[string]bool{}, 0}
	lines := bufio.NewScanner(strings.NewReader(w.must("", "ledger", "export")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Body struct {
				Kind, Call string
				Data       struct {
					Tool string
					Args string `json:"args_sha256"`
				}
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			w.t.Fatal(err)
		}
		switch b := e.Body; b.Kind {
		case "call.started":
			r.started[b.Call]++
			r.args[b.Data.Tool+" "+b.Data.Args] = true
			if b.Data.Tool == "append_line" {
				r.appends++
			}
		case "call.finished":
			r.finished[b.Call]++
		}
	}
	return r
}

// checkEffects holds what is on the disk against what was recorded.
func (w *world) checkEffects(r recorded, quota int) {
	w.t.Helper()
	for call, n := range r.started {
		if n != 1 || r.finished[call] > 1 {
			w.t.Errorf("call %s: %d starts, %d ends", call, n, r.finished[call])
		}
	}
	for call := range r.finished {
		if r.started[call] == 0 {
			w.t.Errorf("call %s ended and never began", call)
		}
	}
	recordedAs := func(tool, args string) bool {
		sum := sha256.Sum256([]byte(args))
		return r.args[tool+" "+hex.EncodeToString(sum[:])]
	}
	seen := map[string]bool{}
	logs, _ := filepath.Glob(filepath.Join(w.ws, "log-*"))
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		for id := range strings.FieldsSeq(string(b)) { // none in a file whose tool was killed before it wrote
			if seen[id] {
				w.t.Errorf("the call of line %s ran twice", id)
			}
			seen[id] = true
			if !recordedAs("append_line", fmt.Sprintf(`{"file":%q,"line":%q}`, filepath.Base(path), id+"\n")) {
				w.t.Errorf("line %s was written unrecorded", id)
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(w.ws, "f-*"))
	for _, path := range files {
		name := filepath.Base(path)
		if !recordedAs("write_file", fmt.Sprintf(`{"content":%q,"path":%q}`, strings.TrimPrefix(name, "f-"), name)) {
			w.t.Errorf("%s was written unrecorded", name)
		}
	}
	if len(seen) == 0 || len(files) == 0 {
		w.t.Errorf("nothing happened: %d lines, %d files", len(seen), len(files))
	}
	if n := w.counted("append_line"); n != r.appends || n > quota || n < len(seen) {
		w.t.Errorf("%d calls counted, %d recorded, %d lines; at most %d may be", n, r.appends, len(seen), quota)
	}
	w.t.Logf("%d started, %d finished, %d lines, %d files, %d counted", len(r.started), len(r.finished), len(seen), len(files), r.appends)
}

// counted asks the database itself, while no daemon has it.
func (w *world) counted(tool string) int {
	w.t.Helper()
	w.must("", "serve", "--stop")
	w.daemonGone()
	cmd := exec.Command("python3", "-c", `import sqlite3,sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM uses WHERE tool = ?", (sys.argv[2],)).fetchone()[0])`, w.state("writ.db"), tool)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(string(bytes.TrimSpace(out)), &n); err != nil {
		w.t.Fatal(err)
	}
	return n
}
