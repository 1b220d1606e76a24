package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/store"
)

func (a *App) LoadConfig() (*config.Config, error) {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return nil, err
	}
	return catalog.Config(path)
}

// Connect is a client of the daemon, which is started when it is down. A daemon
// that runs is reached whatever has become of the file since: stopping an agent
// must not wait for a typo to be found.
func (a *App) Connect(ctx context.Context) (*client.Client, error) {
	return a.dial(ctx, func(format string, args ...any) { fmt.Fprintf(os.Stderr, "warning: "+format+"\n", args...) })
}

// connectQuietly says nothing of a configuration that the daemon has not taken up:
// for the command that has it do so.
func (a *App) connectQuietly(ctx context.Context) (*client.Client, error) {
	return a.dial(ctx, func(string, ...any) {})
}

func (a *App) dial(ctx context.Context, warn func(format string, args ...any)) (*client.Client, error) {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return nil, err
	}
	cfg, err := catalog.Config(path)
	if _, gone := os.Stat(path); errors.Is(gone, os.ErrNotExist) && (a.ConfigFlag != "" || os.Getenv("WRIT_CONFIG") != "") {
		return nil, err // the daemon that runs is not the one that was meant
	}
	if err != nil {
		c := client.Dial(config.StateOf(path))
		if _, dead := c.Health(ctx); dead != nil {
			return nil, err
		}
		warn("the daemon runs under the configuration as it was; now it does not hold:\n%s", Visible(err.Error()))
		return c, nil
	}
	c := client.Dial(cfg.StatePath)
	h, err := c.Health(ctx)
	if client.IsDown(err) {
		return c, startDaemon(ctx, cfg, c)
	}
	if err != nil {
		return nil, err
	}
	if h.Policy != cfg.Digest.String() {
		warn("%s changed since the daemon read it; '%s config reload' has it taken up, or names the keys that are read at the start only: those take '%s serve --stop'", path, Self(), Self())
	}
	return c, nil
}

const (
	startWithin = 10 * time.Second      // how long a daemon may take to answer
	StartLook   = 20 * time.Millisecond // how often it is asked
)

// startDaemon starts 'writ serve' in the background and waits until it answers. Callers
// that find no daemon at the same moment take turns, so that one alone starts it: another
// that began later would take the store when the first is told to end.
func startDaemon(ctx context.Context, cfg *config.Config, c *client.Client) error {
	if err := os.MkdirAll(cfg.StatePath, 0o700); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	logPath := filepath.Join(cfg.StatePath, "daemon.log")
	turn, err := os.OpenFile(logPath, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer turn.Close()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for !lockFile(turn) {
		if answers(ctx, c) {
			return nil
		}
		if ctx.Err() != nil {
			return errors.New("the daemon that another caller starts does not answer; see " + logPath)
		}
		time.Sleep(StartLook)
	}
	for {
		if answers(ctx, c) {
			return nil
		}
		said, err := serveApart(ctx, cfg, logPath, c)
		switch {
		case err != nil:
			return fmt.Errorf("start the daemon: %w", err)
		case said == "":
			return nil
		case ctx.Err() != nil, !strings.Contains(said, store.ErrLocked.Error()):
			return fmt.Errorf("the daemon did not start: %s", said)
		}
		time.Sleep(StartLook) // the store is that of a daemon which is ending: it will be free
	}
}

func answers(ctx context.Context, c *client.Client) bool {
	_, err := c.Health(ctx)
	return err == nil
}

// serveApart runs 'writ serve' with a clean environment, for what the caller's shell has
// set is none of the daemon's business, and waits until it answers. It returns what the
// daemon said if it ended instead.
func serveApart(ctx context.Context, cfg *config.Config, logPath string, c *client.Client) (string, error) {
	typed, program, err := programs()
	if err != nil {
		return "", err
	}
	log, err := os.OpenFile(logPath, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd) // what others said before is not about this start
	if err != nil {
		return "", err
	}
	cmd := exec.Command(program, "serve", "--config", cfg.Path)
	cmd.Args[0] = typed // by which what it says of commands calls them
	cmd.Env, cmd.Dir = cleanEnv(), "/"
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for !answers(ctx, c) {
		select {
		case <-exited:
			return strings.TrimPrefix(lastLines(logPath, before), "writ: "), nil
		case <-ctx.Done():
			return "", errors.New("it does not answer; see " + logPath)
		case <-time.After(StartLook):
		}
	}
	if !strings.Contains(since(logPath, before), Serving) { // somebody else's answers: this one would take over from it
		_ = cmd.Process.Kill() // it has ended otherwise
		<-exited
	}
	return "", nil
}

// Serving is what a daemon says of itself before it answers anybody.
const Serving = "serves agents on"

// cleanEnv is what a daemon takes over from whoever starts it.
func cleanEnv() []string {
	var out []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "TMPDIR":
			out = append(out, kv)
		}
	}
	return out
}

// since is what was written to a file after its first bytes.
func since(path string, from int64) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(bytes.ToValidUTF8(b[min(from, int64(len(b))):], nil)))
}

func lastLines(path string, from int64) string {
	lines := strings.Split(since(path, from), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
