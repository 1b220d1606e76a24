package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/strict"
)

// runPolicy is a file that says what a command can reach.
type runPolicy struct {
	Read     []string        `yaml:"read"`
	Write    []string        `yaml:"write"`
	Env      []string        `yaml:"env"`
	Programs []string        `yaml:"programs"`
	Hosts    []string        `yaml:"hosts"`
	Reads    []string        `yaml:"reads"`
	Ranges   []string        `yaml:"ranges"`
	SSH      []string        `yaml:"ssh"`
	IPv6     bool            `yaml:"ipv6"`
	Timeout  config.Duration `yaml:"timeout"`
	Memory   *int            `yaml:"memory_mib"`
	Pids     *int            `yaml:"pids"`
}

// checkHosts refuses hosts and ranges where they are written.
func (p runPolicy) checkHosts(f *strict.File) {
	for key, list := range map[string][]string{"hosts": p.Hosts, "reads": p.Reads} {
		for i, text := range list {
			if _, err := host.ParsePattern(text); err != nil {
				f.Reject(fmt.Sprintf("%s[%d]", key, i), "%v", err)
			}
		}
	}
	for i, text := range p.SSH {
		if _, err := parseSignIn(text); err != nil {
			f.Reject(fmt.Sprintf("ssh[%d]", i), "%v", err)
		}
	}
	for i, text := range p.Ranges {
		if _, ok := parseRange(text); !ok {
			f.Reject(fmt.Sprintf("ranges[%d]", i), "%q is not a range; write %s", text, config.RangeLike(text))
		}
	}
}

// placeAt makes its paths those from a directory. A program's name alone is none.
func (p runPolicy) placeAt(dir string) {
	from := func(path string) string {
		if path == "" || filepath.IsAbs(path) || path == "~" || strings.HasPrefix(path, "~/") {
			return path
		}
		return filepath.Join(dir, path)
	}
	for _, list := range [][]string{p.Read, p.Write} {
		for i, path := range list {
			list[i] = from(path)
		}
	}
	for i, name := range p.Programs {
		if strings.Contains(name, "/") {
			p.Programs[i] = from(name)
		}
	}
}

// checkPaths refuses what is not there, where it is written.
func (p runPolicy) checkPaths(f *strict.File) {
	for key, list := range map[string][]string{"read": p.Read, "write": p.Write} {
		for i, path := range list {
			if _, err := place(path); err != nil {
				f.Reject(fmt.Sprintf("%s[%d]", key, i), "%v", err)
			}
		}
	}
	for i, name := range p.Programs {
		if _, err := findProgram(name); err != nil {
			f.Reject(fmt.Sprintf("programs[%d]", i), "%v", err)
		}
	}
}

// readPolicy adds what the file says to the flags. Its paths are from where it lies.
func (c *confined) readPolicy() error {
	if c.policy == "" {
		return nil
	}
	text, err := readSome(c.policy)
	if err != nil {
		return errors.New("--policy: " + err.Error())
	}
	var p runPolicy
	f := &strict.File{Name: filepath.Base(c.policy), What: "a policy of 'writ run'", Empty: "write read, write, env, programs, hosts, reads, ranges, ssh, ipv6, timeout, memory_mib or pids"}
	if f.Read(text, &p) {
		if p.Memory != nil && (*p.Memory < 16 || *p.Memory > 1<<20) {
			f.Reject("memory_mib", "must be 16 to 1048576")
		}
		if p.Pids != nil && (*p.Pids < 1 || *p.Pids > 1<<16) {
			f.Reject("pids", "must be 1 to 65536")
		}
		if time.Duration(p.Timeout) > c.timeout.most {
			f.Reject("timeout", "must be at most 7d")
		}
		p.checkHosts(f)
		p.placeAt(filepath.Dir(c.policy))
		p.checkPaths(f)
	}
	if err := f.Err(); err != nil {
		return err
	}
	c.read, c.write = append(p.Read, c.read...), append(p.Write, c.write...)
	c.env, c.programs = append(p.Env, c.env...), append(p.Programs, c.programs...)
	c.hosts, c.reads, c.ranges = append(p.Hosts, c.hosts...), append(p.Reads, c.reads...), append(p.Ranges, c.ranges...)
	c.ssh, c.six = append(p.SSH, c.ssh...), c.six || p.IPv6
	if bound := time.Duration(p.Timeout); bound > 0 && (c.timeout.Duration == 0 || bound < c.timeout.Duration) {
		c.timeout.Duration = bound
	}
	if p.Memory != nil {
		c.limits.Memory = int64(*p.Memory) << 20
	}
	if p.Pids != nil {
		c.limits.Pids = int64(*p.Pids)
	}
	return nil
}

// readSome reads a file, and of something that does not end no more than is refused as too
// large. A pipe that nobody writes to is empty.
func readSome(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > strict.MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), strict.MaxBytes)
	}
	return io.ReadAll(io.LimitReader(f, strict.MaxBytes+1))
}
