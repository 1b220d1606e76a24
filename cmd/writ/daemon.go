package main

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

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
)

func (a *app) loadConfig() (*config.Config, error) {
	path, err := config.Path(a.configFlag)
	if err != nil {
		return nil, err
	}
	return engine.LoadConfig(path)
}

// connect is a client of the daemon, which is started when it is down. A daemon
// that runs is reached whatever has become of the file since: stopping an agent
// must not wait for a typo to be found.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	return a.dial(ctx, func(format string, args ...any) { fmt.Fprintf(os.Stderr, "warning: "+format+"\n", args...) })
}

// connectQuietly says nothing of a configuration that the daemon has not taken up:
// for the command that has it do so.
func (a *app) connectQuietly(ctx context.Context) (*client.Client, error) {
	return a.dial(ctx, func(string, ...any) {})
}

func (a *app) dial(ctx context.Context, warn func(format string, args ...any)) (*client.Client, error) {
	path, err := config.Path(a.configFlag)
	if err != nil {
		return nil, err
	}
	cfg, err := engine.LoadConfig(path)
	if _, gone := os.Stat(path); errors.Is(gone, os.ErrNotExist) && (a.configFlag != "" || os.Getenv("WRIT_CONFIG") != "") {
		return nil, err // the daemon that runs is not the one that was meant
	}
	if err != nil {
		c := client.Dial(config.StateOf(path))
		if _, dead := c.Health(ctx); dead != nil {
			return nil, err
		}
		warn("the daemon runs under the configuration as it was; now it does not hold:\n%s", visible(err.Error()))
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
		warn("%s changed since the daemon read it; '%s config reload' has it taken up", path, self())
	}
	return c, nil
}

// startWithin is how long a daemon may take to answer.
const startWithin = 10 * time.Second

// startDaemon starts 'writ serve' in the background with a clean environment:
// what the caller's shell has set is none of the daemon's business.
func startDaemon(ctx context.Context, cfg *config.Config, c *client.Client) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.StatePath, 0o700); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	logPath := filepath.Join(cfg.StatePath, "daemon.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd) // what others said before is not about this start
	if err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	cmd := exec.Command(self, "serve", "--config", cfg.Path)
	cmd.Env, cmd.Dir = cleanEnv(), "/"
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		select {
		case <-exited:
			// Another caller may have started one at the same moment.
			if _, err := c.Health(ctx); err == nil {
				return nil
			}
			return fmt.Errorf("the daemon did not start: %s", strings.TrimPrefix(lastLines(logPath, before), "writ: "))
		case <-ctx.Done():
			return errors.New("the daemon does not answer; see " + logPath)
		case <-time.After(20 * time.Millisecond):
			if _, err := c.Health(ctx); err == nil {
				return nil
			}
		}
	}
}

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

func lastLines(path string, from int64) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	b = b[min(from, int64(len(b))):]
	lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(b, nil))), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
