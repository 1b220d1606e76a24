package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const mcpCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"n":%d}}}`

// mcpClient is a raw client over HTTP: what it adds is the same for everybody.
type mcpClient struct {
	http    *http.Client
	url     string
	token   string
	session string
	tool    string
	n       atomic.Int64
}

func (c *mcpClient) post(body string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return c.http.Do(req)
}

// begin opens a session, where the server has them.
func (c *mcpClient) begin() error {
	resp, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	if err != nil {
		return err
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	c.session = resp.Header.Get("Mcp-Session-Id")
	resp, err = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func (c *mcpClient) call() error {
	n := c.n.Add(1)
	resp, err := c.post(fmt.Sprintf(mcpCall, n, c.tool, n))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && (!bytes.Contains(b, []byte(`"text":"ok"`)) || bytes.Contains(b, []byte(`"isError":true`))) {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return err
}

// pipeClient is the same over a pair of pipes.
type pipeClient struct {
	in  io.Writer
	out *bufio.Reader
	n   int
}

func (c *pipeClient) call() error {
	c.n++
	if _, err := fmt.Fprintf(c.in, mcpCall+"\n", c.n, "noop", c.n); err != nil {
		return err
	}
	line, err := c.out.ReadBytes('\n')
	if err == nil && !bytes.Contains(line, []byte(`"text":"ok"`)) {
		err = fmt.Errorf("%s", line)
	}
	return err
}

// mcp measures a call of a server that does nothing: directly, through a bare reverse
// proxy, and through writ, which decides it and writes it down twice; in turns.
func mcp(program, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	direct, stop, err := started(self, "noop-http")
	if err != nil {
		return err
	}
	defer stop()
	proxied, stop, err := started(self, "proxy", direct)
	if err != nil {
		return err
	}
	defer stop()
	g, err := startGateway(program, self, direct)
	if err != nil {
		return err
	}
	defer g.stop()
	pool := func() *http.Client {
		return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, MaxConnsPerHost: 128}}
	}
	clients := []*mcpClient{
		{http: pool(), url: direct + "/mcp", tool: "noop"}, {http: pool(), url: proxied + "/mcp", tool: "noop"},
		{http: pool(), url: g.url, token: g.token, tool: "web__noop"}, {http: pool(), url: g.url, token: g.token, tool: "pipe__noop"},
	}
	names := []string{"direct, over HTTP", "through a bare reverse proxy", "through writ to HTTP", "through writ to a program in a box"}
	for _, c := range clients {
		if err := errors.Join(c.begin(), c.call()); err != nil {
			return err
		}
	}
	pipe, stop, err := piped(self)
	if err != nil {
		return err
	}
	defer stop()
	commit, end, err := bareCommit(filepath.Join(dir, "bare-mcp.db"))
	if err != nil {
		return err
	}
	defer end()
	took := make([][]time.Duration, len(clients)+2)
	for range 600 {
		for i, f := range []func() error{clients[0].call, clients[1].call, clients[2].call, clients[3].call, pipe.call, func() error { return errors.Join(commit(), commit()) }} {
			at := time.Now()
			if err := f(); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
			took[i] = append(took[i], time.Since(at))
		}
	}
	p := make([]time.Duration, len(took))
	for i := range took {
		p[i] = middle(took[i])
	}
	row("two bare commits, p50", p[5].String(), "")
	row("tools/call direct, over HTTP, p50", p[0].String(), "")
	row("tools/call direct, over pipes, p50", p[4].String(), "")
	for i := 1; i < len(clients); i++ {
		beside := ""
		if i > 1 {
			allowed := p[1] - p[0] + p[5]*13/10
			beside = fmt.Sprintf("%s of the proxy's and 1.3 x two bare commits (%s)", ratio(p[i]-p[0], allowed), allowed)
		}
		row("tools/call "+names[i]+", added at p50", (p[i] - p[0]).String(), beside)
	}
	var rate [4]float64
	for i, c := range clients {
		if rate[i], err = callers(64, 4*time.Second, c.call); err != nil {
			return err
		}
	}
	for i := range clients {
		row("tools/call "+names[i]+", 64 callers", fmt.Sprintf("%.0f calls/s", rate[i]), fmt.Sprintf("%.2fx of the proxy", rate[i]/rate[1]))
	}
	return g.manySessions(pool())
}

// callers has many call for a while, and returns how many calls a second came of it.
func callers(n int, d time.Duration, call func() error) (float64, error) {
	var done atomic.Int64
	var failed atomic.Value
	var wg sync.WaitGroup
	began := time.Now()
	for range n {
		wg.Go(func() {
			for time.Since(began) < d {
				if err := call(); err != nil {
					failed.Store(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if err, ok := failed.Load().(error); ok {
		return 0, err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}

// started starts this program as one of the parties and returns where it listens.
func started(self string, args ...string) (url string, stop func(), err error) {
	cmd := exec.Command(self, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), func() { in.Close(); cmd.Wait() }, err
}

func piped(self string) (*pipeClient, func(), error) {
	cmd := exec.Command(self, "noop-stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return &pipeClient{in: in, out: bufio.NewReader(out)}, func() { in.Close(); cmd.Wait() }, cmd.Start()
}

// gateway is a daemon with the server behind it, twice.
type gateway struct {
	url, token string
	pid        int
	stop       func()
}

func startGateway(program, self, noop string) (*gateway, error) {
	base, err := os.MkdirTemp(map[bool]string{true: "/srv", false: ""}[os.Geteuid() == 0], "writ-bench-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(base, 0o755); err != nil {
		return nil, err
	}
	own := filepath.Join(base, "server")
	env := append(os.Environ(), "HOME="+base, "XDG_CONFIG_HOME="+base+"/.config", "XDG_STATE_HOME="+base+"/.state", "WRIT_CONFIG=")
	writ := func(stdin string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env, cmd.Stdin = env, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("writ %v: %w: %s", args, err, out)
		}
		return string(out), err
	}
	copied, err := os.ReadFile(self)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(own, copied, 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(base, ".config/writ/writ.yaml")
	text := fmt.Sprintf("version: 1\nlisten: 127.0.0.1:0\nworkspaces: {main: {path: %q}}\nagents: {bench: {workspace: main, level: elevated, autonomy: full, allowed: [\"@web\", \"@pipe\"]}}\n"+
		"upstreams:\n  web: {url: %q}\n  pipe: {command: [%q, noop-stdio], read: [%q]}\n", filepath.Join(base, "ws"), noop+"/mcp", own, base+"/server")
	err = errors.Join(os.MkdirAll(filepath.Join(base, "ws"), 0o755), os.MkdirAll(filepath.Dir(config), 0o700), os.WriteFile(config, []byte(text), 0o600))
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(base, "ws"), 65534, 65534); err != nil {
			return nil, err
		}
	}
	out, err := writ("correct horse\n", "init", "--as", "me", "--passphrase-stdin")
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(out, "WRIT_TOKEN=")
	token, _, _ := strings.Cut(rest, "\n")
	serve := exec.Command(program, "serve")
	serve.Env = env
	said, err := serve.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := serve.Start(); err != nil {
		return nil, err
	}
	g := &gateway{token: strings.TrimSpace(token), pid: serve.Process.Pid, stop: func() { serve.Process.Signal(os.Interrupt); serve.Wait(); os.RemoveAll(base) }}
	lines := bufio.NewReader(said)
	first, err := lines.ReadString('\n')
	if err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, lines)
	_, addr, _ := strings.Cut(strings.TrimSpace(first), "http://")
	g.url = "http://" + addr + "/mcp"
	for _, name := range []string{"web__noop", "pipe__noop"} {
		for range 100 {
			if _, err = writ("correct horse\n", "tool", "accept", name, "--passphrase-stdin"); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err == nil {
			_, err = writ("correct horse\n", "tool", "waive", name, "--class", "none", "--reason", "a benchmark", "--passphrase-stdin")
		}
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// manySessions is what the daemon needs for a thousand clients.
func (g *gateway) manySessions(client *http.Client) error {
	for range 1000 {
		c := &mcpClient{http: client, url: g.url, token: g.token, tool: "pipe__noop"}
		if err := errors.Join(c.begin(), c.call()); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	kib, err := rss(g.pid)
	if err != nil {
		return err
	}
	row("daemon with 1,000 MCP sessions, a call in each, resident", fmt.Sprintf("%.1f MiB", float64(kib)/1024), "")
	return nil
}
