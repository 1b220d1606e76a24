package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/writ-run/writ/client"
)

// configuration is of a daemon whose one agent asks nobody.
const configuration = `version: 1
listen: 127.0.0.1:0
store: {path: %[1]q}
workspaces: {main: {path: %[2]q}}
agents:
  client: {workspace: main, person: tester, level: elevated, autonomy: full}
tool_disclosure: {active: never}
`

// configure writes the configuration of a daemon, and says where it and its state are.
func configure(dir, more string) (config, state string, err error) {
	config, state = filepath.Join(dir, "writ.yaml"), filepath.Join(dir, "state")
	workspace := filepath.Join(dir, "workspace")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return "", "", err
	}
	return config, state, os.WriteFile(config, []byte(fmt.Sprintf(configuration, state, workspace)+more), 0o600)
}

// behind runs a daemon with the example server behind its gateway, in a box.
func behind(ctx context.Context, dir, writ, everything string) (column, func(), error) {
	dir = filepath.Join(dir, "behind")
	program := filepath.Join(dir, "server", "everything-server")
	if err := copyProgram(everything, program); err != nil {
		return column{}, nil, err
	}
	config, state, err := configure(dir, fmt.Sprintf("upstreams:\n  everything: {command: [%q], read: [%q], prefix: none, relay: [elicitation, sampling, roots]}\n", program, filepath.Dir(program)))
	if err != nil {
		return column{}, nil, err
	}
	cmd := exec.CommandContext(ctx, writ, "serve", "--config", config)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, "/", os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return column{}, nil, err
	}
	stop, err := start(cmd)
	if err != nil {
		return column{}, nil, err
	}
	addr, err := announced(out)
	if err != nil {
		return column{}, stop, err
	}
	c, end, err := admitted(ctx, "behind", state, "test_simple_text", addr)
	return c, func() { end(); stop() }, err
}

// announced reads where a daemon serves agents from what it prints.
func announced(out io.Reader) (string, error) {
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	_, addr, ok := strings.Cut(strings.TrimSpace(line), "http://")
	if !ok {
		return "", fmt.Errorf("the daemon does not start: %q %w", line, err)
	}
	go io.Copy(io.Discard, r)
	return addr, nil
}

func copyProgram(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

var tester = client.Credentials{Name: "tester", Passphrase: "correct horse battery"}

// admitted makes the first person of a daemon, who accepts everything that its servers
// offer, and gives the suite a way in: it cannot send a token itself. offered is a tool
// to wait for.
func admitted(ctx context.Context, name, state, offered, addr string) (column, func(), error) {
	nothing := func() {}
	daemon := client.Dial(state)
	if err := daemon.AddFirstPerson(ctx, tester); err != nil {
		return column{}, nothing, err
	}
	if err := eventually(ctx, "the server offers "+offered, func() (bool, error) {
		_, err := daemon.Tool(ctx, offered)
		return err == nil, nil
	}); err != nil {
		return column{}, nothing, err
	}
	if err := acceptAll(ctx, daemon); err != nil {
		return column{}, nothing, err
	}
	token, err := daemon.NewToken(ctx, "client", tester)
	if err != nil {
		return column{}, nothing, err
	}
	at, end, err := withToken("http://"+addr, token.Token)
	return column{name, at + "/mcp", at + "/mcp"}, end, err
}

// acceptAll has everything used that is suspended, without anybody asked.
func acceptAll(ctx context.Context, daemon *client.Client) error {
	all, err := daemon.Tools().All(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.State != "suspended" {
			continue
		}
		if err := daemon.AcceptTool(ctx, t.Name, client.AcceptRequest{Digest: t.Digest, By: tester}); err != nil {
			return fmt.Errorf("accept %s: %w", t.Name, err)
		}
		w := client.WaiveRequest{Digest: t.Digest, Class: "none", NotDangerous: t.Dangerous, Reason: "a fixture", By: tester}
		if err := daemon.WaiveTool(ctx, t.Name, w); err != nil {
			return fmt.Errorf("waive %s: %w", t.Name, err)
		}
	}
	return nil
}
