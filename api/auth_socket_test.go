//go:build linux

package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/need"
)

// On the operator's socket, Writ-Agent makes the daemon's own user that agent, and
// nothing more.
func TestOperatorAsAgent(t *testing.T) {
	w := newWorld(t)
	as := []string{"Writ-Agent: coder"}
	w.ok(ask{operatorDoor, "", "POST", "/v1/calls", as, `{"tool":"stat","args":{"path":"."}}`})
	s := jsonOf[client.Session](t, w.ok(ask{operatorDoor, "", "POST", "/v1/sessions", as, `{"name":"a"}`}))
	if want := fmt.Sprint("peer:", os.Geteuid()); s.Token != want || s.Agent != "coder" {
		t.Errorf("recorded as %q of %s, want %q", s.Token, s.Agent, want)
	}
	if n := len(jsonOf[client.Page[client.Agent]](t, w.ok(ask{operatorDoor, "", "GET", "/v1/agents", as, ""})).Data); n != 2 {
		t.Errorf("it sees %d agents, as the operator does", n)
	}
	if n := len(jsonOf[client.Page[client.Agent]](t, w.ok(ask{operatorDoor, "", "GET", "/v1/agents", nil, ""})).Data); n != 3 {
		t.Errorf("the operator sees %d agents", n)
	}
	for _, r := range routes() {
		if r.who != operator {
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(r.path)
		w.refused(ask{operatorDoor, "", r.method, path, as, ""}, 403, writ.Denied, "this is for the operator, and Writ-Agent makes you that agent; leave it out")
	}
	child := jsonOf[client.Delegated](t, w.ok(ask{operatorDoor, "", "POST", "/v1/delegations", as, `{"name":"kid","lasts_seconds":60,"request":{}}`}))
	const nobody = "there is no such agent here; ask the operator for the name of yours"
	w.refused(ask{operatorDoor, "", "GET", "/v1/tools", []string{"Writ-Agent: " + child.Agent}, ""}, 401, writ.Unauthenticated, nobody)
	w.refused(ask{operatorDoor, "", "GET", "/v1/tools", []string{"Writ-Agent: nobody"}, ""}, 401, writ.Unauthenticated, nobody)
	w.refused(ask{operatorDoor, "", "GET", "/v1/tools", []string{"Writ-Agent: *"}, ""}, 401, writ.Unauthenticated, nobody)
	const never = "Writ-Agent is for users of this machine, on a Unix socket and without a token; leave it out"
	w.refused(ask{operatorDoor, "coder", "GET", "/v1/tools", as, ""}, 403, writ.Denied, never)
	w.refused(ask{agentDoor, "coder", "GET", "/v1/tools", as, ""}, 403, writ.Denied, never)
	w.refused(ask{agentDoor, "", "GET", "/v1/tools", as, ""}, 403, writ.Denied, never)
	must(t, w.operator.Stop(t.Context(), client.StopRequest{Agent: "coder", Reason: "test"}))
	got := w.ask(ask{operatorDoor, "", "POST", "/v1/calls", as, `{"tool":"stat","args":{"path":"."}}`})
	if got.problem.Kind != writ.Stopped {
		t.Errorf("stopped: %s", got.body)
	}
}

// socketWorld is a world whose configuration lists users, and its agents' socket.
func socketWorld(t *testing.T, agents string) (*world, string) {
	t.Helper()
	w := newWorld(t)
	dir, err := os.MkdirTemp("", "writ-sock-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "agents.sock")
	w.write("writ.yaml", strings.NewReplacer("$DIR", w.dir, "$SOCKET", path).Replace(`version: 1
listen: {address: "127.0.0.1:0", socket: $SOCKET}
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
agents:
`+agents))
	w.restart()
	l, err := listenAgents(path, &proofs{})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{engine: w.engine, log: slog.New(slog.DiscardHandler), limits: usual(), stop: cancel, ending: ctx.Done(), busy: map[string]int{}, streams: map[string]int{}}
	h, err := s.door(agentDoor)
	must(t, err)
	srv := s.httpServer(h)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() { cancel(); srv.Close(); <-ended })
	return w, path
}

// overSocket asks as a user of this machine, on a thread that is that user's.
func overSocket(t *testing.T, uid int, path, request string) (status int, body string) {
	t.Helper()
	type dialled struct {
		c   net.Conn
		err error
	}
	got := make(chan dialled)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and with it the user
		if uid != os.Geteuid() {
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
				got <- dialled{nil, e}
				return
			}
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0) // no other thread may do any of it
		if err == nil {
			err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		}
		if err != nil {
			got <- dialled{nil, err}
			return
		}
		f := os.NewFile(uintptr(fd), path)
		c, err := net.FileConn(f)
		f.Close()
		got <- dialled{c, err}
	}()
	d := <-got
	must(t, d.err)
	defer d.c.Close()
	_, err := io.WriteString(d.c, request+"Host: writ\r\nConnection: close\r\n\r\n")
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(d.c), nil)
	must(t, err)
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b)
}

const whoami = "GET /v1/agents?limit=1 HTTP/1.1\r\n"

// On the agents' socket the kernel says who comes, and the configuration which agents
// that user may be.
func TestAgentSocket(t *testing.T) {
	me := os.Geteuid()
	w, path := socketWorld(t, fmt.Sprintf(`
  coder: {workspace: main, users: ["%d", "64001"]}
  other: {workspace: main, users: ["64001"]}
  helper: {workspace: main}
`, me))
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o666 {
		t.Errorf("the socket's mode is %v", info.Mode())
	}
	rows := []struct {
		uid     int
		request string
		status  int
		want    string
	}{
		{me, whoami, 200, `"name":"coder"`},
		{me, whoami + "Writ-Agent: coder\r\n", 200, `"name":"coder"`},
		{me, whoami + "Writ-Agent: other\r\n", 403, fmt.Sprintf("user %d of this machine is not that agent; name one as Writ-Agent: coder", me)},
		{me, whoami + "Writ-Agent: coder\r\nWrit-Agent: other\r\n", 400, "Writ-Agent is given twice; send it once"},
		{me, whoami + "Authorization: Bearer " + w.token("other") + "\r\n", 200, `"name":"other"`},
		{me, whoami + "Authorization: Bearer writ_x\r\n", 401, "the token is unknown or revoked"},
		{me, whoami + "Authorization: Bearer " + w.token("coder") + "\r\nWrit-Agent: coder\r\n", 403, "on a Unix socket and without a token; leave it out"},
		{me, "GET /v1/config HTTP/1.1\r\n", 404, "there is nothing at this path"},
		{me, "POST /v1/stops HTTP/1.1\r\n", 404, "there is nothing at this path"},
		{me, "GET /v1/health HTTP/1.1\r\n", 200, `"status":"ok"`},
		{64001, whoami, 401, "user 64001 of this machine is several agents; name one as Writ-Agent: coder or other"},
		{64001, whoami + "Writ-Agent: other\r\n", 200, `"name":"other"`},
		{64001, whoami + "Writ-Agent: helper\r\n", 403, "user 64001 of this machine is not that agent; name one as Writ-Agent: coder or other"},
		{64002, whoami, 401, "user 64002 of this machine is no agent; the operator lists users with agents.NAME.users"},
		{64002, whoami + "Writ-Agent: coder\r\n", 401, "user 64002 of this machine is no agent; the operator lists users with agents.NAME.users"},
	}
	for _, row := range rows {
		if row.uid != me && me != 0 {
			continue // TestAgentSocketOfOthers
		}
		if status, body := overSocket(t, row.uid, path, row.request); status != row.status || !strings.Contains(body, row.want) {
			t.Errorf("user %d: %q\n %d %s\n want %d %s", row.uid, row.request, status, body, row.status, row.want)
		}
	}
	// The list is the configuration's in force.
	text, err := os.ReadFile(filepath.Join(w.dir, "writ.yaml"))
	must(t, err)
	w.write("writ.yaml", strings.Replace(string(text), fmt.Sprintf(`"%d", `, me), "", 1))
	w.ok(ask{operatorDoor, "", "POST", "/v1/config/reload", nil, ""})
	if status, body := overSocket(t, me, path, whoami); status != 401 {
		t.Errorf("taken off the list: %d %s", status, body)
	}
}

// The rows of other users were run, or this is no pass.
func TestAgentSocketOfOthers(t *testing.T) {
	need.Root(t)
	w, path := socketWorld(t, `
  coder: {workspace: main, users: ["64001"]}
  other: {workspace: main}
  helper: {workspace: main}
`)
	if status, body := overSocket(t, 64001, path, whoami); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	w.ok(ask{operatorDoor, "", "DELETE", "/v1/tokens/peer:64001", nil, ""})
	if status, body := overSocket(t, 64001, path, whoami); status != 401 || !strings.Contains(body, "this proof of who you are was revoked") {
		t.Errorf("revoked: %d %s", status, body)
	}
	if status, body := overSocket(t, 0, path, whoami); status != 401 || !strings.Contains(body, "user 0 of this machine is no agent") {
		t.Errorf("root, who is not listed: %d %s", status, body)
	}
}

// The socket is opened only where nobody else could have put one.
func TestListenAgents(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	must(t, os.Chmod(dir, 0o777))
	_, err := listenAgents(path, &proofs{})
	if want := fmt.Sprintf("listen on %s: others can write to %s and put a socket of their own there; run: chown %d %s; chmod go-w %s", path, dir, os.Geteuid(), dir, dir); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	must(t, os.Chmod(dir, 0o755))
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := listenAgents(path, &proofs{}); err == nil {
		t.Error("a file was replaced")
	}
	must(t, os.Remove(path))
	for range 2 { // the second finds the first's socket
		l, err := listenAgents(path, &proofs{})
		must(t, err)
		l.(byPeer).Listener.(*net.UnixListener).SetUnlinkOnClose(false)
		must(t, l.Close())
	}
	if _, err := Listen(config.Listen{Address: "127.0.0.1:0", ClientCA: path}, dir, nil); err == nil || err.Error() != "listen.client_ca: certificates are shown over TLS only; set listen.certificate and listen.key" {
		t.Errorf("%v", err)
	}
}
