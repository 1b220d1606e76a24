package writ

import (
	"encoding/hex"
	"fmt"
	"time"
)

// A Call is one request to use one tool: who asks, for what, with exactly which
// arguments. It is a value; no stage changes it.
//
// The edge (package engine) fills every field before the gate sees the call:
// it authenticates the agent, pins the tool by the digest of its definition,
// parses the arguments once into canonical bytes and resolves every path and
// host in them once. A call that was not resolved is refused, because a decision
// over unresolved names would be a decision about something else.
type Call struct {
	ID      string   // unique, made by the edge
	Agent   string   // authenticated, never taken from the arguments
	Chain   []string // the agent and those it was delegated by, nearest first, as they were when the call arrived
	Token   string   // the id of the token it came with; empty: none
	Person  string   // whom the agent acts for; may be empty
	Session string
	Task    string
	Door    string // the front door it came through: http, cli, library
	Code    bool   // the embedding program itself calls, not a model; no front door but the library sets it

	// Patience is how long the caller waits for a person, where one has to be
	// asked; zero: not at all, the request stays pending. It changes nothing of
	// what is asked.
	Patience time.Duration
	// Key makes calls of one agent with the same key one call: it runs at most once,
	// and whoever makes it again gets what came of it. Empty: each call is its own.
	Key string
	// Detached says that nobody waits for the outcome of a call that was approved: its
	// ID is the approved invocation's, and the outcome is kept until the same call is
	// made again.
	Detached bool
	Cost     *float64 // what the caller thinks it costs; written down, trusted for nothing

	Tool       string
	Definition Digest // of the tool's definition as it was when the call arrived
	Action     string // the action type, by the tool and these arguments alone
	Args       string // canonical JSON (RFC 8785); a string so that nobody can change it
	ArgsDigest Digest // SHA-256 of Args

	Dir      string   // absolute working directory, symlinks resolved
	Targets  []Target // every path and host the arguments name
	Resolved bool     // Targets is complete
}

// Root is the agent at the top of the chain: what counts over time counts against it.
func (c *Call) Root() string {
	if len(c.Chain) == 0 {
		return c.Agent
	}
	return c.Chain[len(c.Chain)-1]
}

// A Target is one path, host, connection or method named by an argument, resolved
// before deciding.
type Target struct {
	Pointer string // JSON pointer of the argument
	Value   string // as the caller wrote it
	Kind    TargetKind
	Side    Side     // of a host: read says that nothing goes there but requests that only read
	Path    string   // absolute, cleaned, symlinks of the deepest existing ancestor resolved
	Via     []string // where those are: other names that it was reached by, the caller's first
	Host    string   // normal form host:port; of a connection, where it leads
	Problem string   // why it could not be resolved; such a target is denied
}

// TargetKind says what a target names.
type TargetKind uint8

const (
	TargetPath TargetKind = iota
	TargetHost
	TargetConnection // a connection of the operator's, by its name
	TargetMethod     // a method of HTTP: what is done there
)

// Is is what a target really names, for people and for what they agreed to.
func (t *Target) Is() string {
	switch t.Kind {
	case TargetPath:
		return t.Path
	case TargetMethod:
		return t.Value
	}
	return t.Host
}

// Side says which half of a filesystem stance a path is held against.
type Side uint8

const (
	SideEither Side = iota // no annotation: the union of read and write
	SideRead
	SideWrite
)

// A Digest is a SHA-256 sum. The zero Digest stands for "none" and never matches.
type Digest [32]byte

func (d Digest) IsZero() bool   { return d == Digest{} }
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short is for people: enough to tell two digests on a screen apart, never to decide by.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Digest) UnmarshalText(b []byte) error {
	v, err := ParseDigest(string(b))
	if err == nil {
		*d = v
	}
	return err
}

// ParseDigest reads the 64 hexadecimal digits that String prints.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) {
		return d, fmt.Errorf("a digest has %d hexadecimal digits, not %d", 2*len(d), len(s))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, fmt.Errorf("not a digest: %w", err)
	}
	return d, nil
}

// A Result is what a tool gives back.
type Result struct {
	Content  string         // what the model sees
	IsError  bool           // the tool ran and failed in a way the model can act on
	Metadata map[string]any // never shown to the model
}
