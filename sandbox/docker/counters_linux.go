package docker

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// counters are files in which the kernel counts what happens in the network namespace of a
// sidecar. They are opened before that has given up what it may.
type counters struct{ protocols, devices *os.File }

func openCounters() (c counters, err error) {
	if c.protocols, err = os.Open("/proc/self/net/snmp"); err == nil {
		c.devices, err = os.Open("/proc/self/net/dev")
	}
	return c, err
}

// last is what a sidecar has to say at its end.
func (c counters) last() []any {
	protocols, devices := whole(c.protocols), whole(c.devices)
	return []any{
		"connections", listed(protocols, "Tcp:", "ActiveOpens"), "refused", listed(protocols, "Tcp:", "AttemptFails"),
		"datagrams", listed(protocols, "Udp:", "OutDatagrams"), "bytes", passed(devices),
	}
}

func whole(f *os.File) []byte {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20)) // what cannot be read is counted as nothing
	return b
}

// listed is a number of a file that has two lines for each protocol: names, and values.
func listed(text []byte, protocol, name string) int64 {
	var names [][]byte
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i := range min(len(names), len(fields)) {
			if string(names[i]) == name {
				n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
				return n
			}
		}
	}
	return 0
}

// passed are the bytes of packets on loopback, which is the one device there.
func passed(text []byte) int64 {
	for line := range bytes.Lines(text) {
		if name, rest, ok := bytes.Cut(bytes.TrimSpace(line), []byte(":")); ok && string(name) == "lo" {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
				return n
			}
		}
	}
	return 0
}
