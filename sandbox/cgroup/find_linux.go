package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The controllers that limit.
const (
	memory = "memory"
	pids   = "pids"
)

// A hierarchy is one tree of groups, and where this process is in it.
type hierarchy struct {
	unified bool     // version 2
	top     string   // where it is mounted
	own     string   // directory of the group of this process
	has     []string // controllers that concern us
}

// find lists the hierarchies that this process can see.
func find() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("control groups: %w; mount /proc", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("control groups: %w; use a kernel with CONFIG_CGROUPS", err)
	}
	all := parse(string(mounts), string(groups))
	if len(all) == 0 {
		return nil, errors.New("control groups: none is mounted that holds this process; mount them at /sys/fs/cgroup")
	}
	return all, nil
}

// parse reads /proc/self/mountinfo and /proc/self/cgroup. A controller is in one
// hierarchy only, so those of version 1 are known by their mount options and version 2
// has what its files say.
func parse(mounts, groups string) []hierarchy {
	var all []hierarchy
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(kind) < 3 || kind[0] != "cgroup" && kind[0] != "cgroup2" {
			continue
		}
		h := hierarchy{unified: kind[0] == "cgroup2", top: unescape(f[4])}
		options := strings.Split(kind[2], ",")
		for _, c := range []string{memory, pids} {
			if !h.unified && slices.Contains(options, c) {
				h.has = append(h.has, c)
			}
		}
		path, ok := pathIn(groups, h)
		if !ok || !h.unified && len(h.has) == 0 || slices.ContainsFunc(all, h.same) {
			continue
		}
		rest, err := filepath.Rel(unescape(f[3]), path)
		if err != nil || strings.HasPrefix(path, "/..") || rest == ".." || strings.HasPrefix(rest, "../") {
			continue // this mount shows another part of the tree
		}
		h.own = filepath.Join(h.top, rest)
		all = append(all, h)
	}
	return all
}

// same reports whether two mounts are of one hierarchy.
func (h hierarchy) same(o hierarchy) bool {
	return h.unified == o.unified && slices.Equal(h.has, o.has)
}

// pathIn is the group of this process in a hierarchy.
func pathIn(groups string, h hierarchy) (string, bool) {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if h.unified && parts[0] == "0" && parts[1] == "" {
			return parts[2], true
		}
		if !h.unified && len(h.has) > 0 && slices.Contains(strings.Split(parts[1], ","), h.has[0]) {
			return parts[2], true
		}
	}
	return "", false
}

// unescape undoes the octal of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// list reads a file of words.
func list(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}
