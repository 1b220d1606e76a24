package writ

import (
	"fmt"
	"slices"
	"time"
)

// Effect is the outcome of deciding. Deny beats ask beats allow.
type Effect uint8

const (
	Deny Effect = iota
	Ask
	Allow
)

var effectNames = []string{"deny", "ask", "allow"}

func (e Effect) String() string                { return name(e, effectNames) }
func (e Effect) MarshalText() ([]byte, error)  { return []byte(e.String()), nil }
func (e *Effect) UnmarshalText(b []byte) error { return parse(e, effectNames, b) }

// Class says what a call does outside its own workspace. The zero value is the
// strictest: a tool that says nothing is taken to change something outside.
type Class uint8

const (
	ClassWrite    Class = iota // changes something outside, or is not idempotent
	ClassReadOnly              // reads outside
	ClassNone                  // no contact outside
)

var classNames = []string{"write", "read_only", "none"}

func (c Class) String() string                { return name(c, classNames) }
func (c Class) MarshalText() ([]byte, error)  { return []byte(c.String()), nil }
func (c *Class) UnmarshalText(b []byte) error { return parse(c, classNames, b) }

// A Reason is one source that spoke for an outcome. Text is written for the
// agent; Where (a configuration file and line, or "built in") is for people.
type Reason struct {
	Effect Effect `json:"effect"`
	Source string `json:"source"` // which rule spoke: level, denied_list, argument_gate, …
	Text   string `json:"text"`
	Where  string `json:"where,omitempty"`
}

// A Decision is the outcome for one call, why, and all that the call may reach.
// The zero Decision denies.
type Decision struct {
	Effect  Effect
	Reasons []Reason
	Confine Confinement

	Action  string // the action type of this call
	Risk    string
	Class   Class
	Reads   bool   // it changes nothing anywhere, so running it again does no harm
	Policy  Digest // of the configuration it was decided under
	Subject Digest // binds call, class, confinement and policy; set when Effect is Ask
	Reserve Reserve

	Dangerous bool   // it takes four eyes, and no grant covers it
	Quorum    int    // how many people have to agree, where one has to; at least one
	Base      Digest // of what every call of this tool by this agent may reach, before its arguments ask for more; set when Effect is Ask
}

// Confinement is all that a call may reach. The zero value reaches nothing.
// Paths are absolute with symlinks resolved. A driver enforces all of it or
// starts nothing (I5).
type Confinement struct {
	Read      []string  `json:"read"`  // files and directories readable, with all below
	Write     []string  `json:"write"` // the same, writable
	Named     []string  `json:"named"` // of what is protected within Write, what the tool's policy names: not protected from it
	Hide      []string  `json:"hide"`  // out of reach whatever Read and Write say
	Exec      Exec      `json:"exec"`
	Network   Network   `json:"network"`
	Env       []string  `json:"env"` // names passed on besides the driver's own allowlist
	Isolation Isolation `json:"isolation"`
	Backend   string    `json:"backend"` // the driver the operator chose; empty: any that holds all of this
	Limits    Limits    `json:"limits"`
	// Server is who does the work in its own place, with a reach of its own: all above
	// is then about this process alone. Nil where nobody else does it.
	Server *Server `json:"server,omitempty"`
	// Connection is the operator's connection that the call goes over, with credentials
	// that it never sees. Nil where it goes over none.
	Connection *Connection `json:"connection,omitempty"`
	// SSH is where programs of the box may sign in by ssh, with keys that stay outside (I7).
	// It opens no host. An approval binds it, as it binds the connection.
	SSH []SignIn `json:"ssh,omitempty"`
}

// SignIn is who a call may be on a server of ssh.
type SignIn struct {
	Host string `json:"host"` // normal form host:port, which is among the hosts of the network
	User string `json:"user"`
	Key  string `json:"key"` // where it is kept, never what it is
}

// Connection is where a connection leads, and by reference with what credentials. An
// approval binds it: over another one, or with others, it would be another call (I4).
type Connection struct {
	Name        string `json:"name"`
	URL         string `json:"url"`                   // what every path is below
	Auth        string `json:"auth"`                  // how it proves itself, by which secrets, never with their values (I7)
	Environment string `json:"environment,omitempty"` // staging or production, where the operator says so
	Digest      Digest `json:"digest"`                // of everything that is written of it
}

// Server is an MCP server, and what it reaches whatever a call says.
type Server struct {
	Name  string   `json:"name"`
	Box   bool     `json:"box"`             // it runs in a box of its own, which reaches Read, Write and Hosts and nothing else
	Read  []string `json:"read,omitempty"`  // besides the system's programs
	Write []string `json:"write,omitempty"` // and reads
	Hosts []string `json:"hosts,omitempty"`
	URL   string   `json:"url,omitempty"` // where it is, when it is not in a box; what it reaches from there nobody here confines
}

// Exec says which programs a process may execute.
type Exec struct {
	Mode  ExecMode `json:"mode"`
	Files []string `json:"files,omitempty"` // with ExecListed: files, or directories with all below
}

type ExecMode uint8

const (
	ExecNone ExecMode = iota
	ExecListed
	ExecAny // any program it can read
)

var execNames = []string{"none", "listed", "any"}

func (m ExecMode) String() string                { return name(m, execNames) }
func (m ExecMode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *ExecMode) UnmarshalText(b []byte) error { return parse(m, execNames, b) }

// Network says which hosts can be reached.
type Network struct {
	Mode  NetworkMode `json:"mode"`
	Hosts []string    `json:"hosts,omitempty"` // with NetworkHosts: normal forms host:port
	Reads []string    `json:"reads,omitempty"` // the same, to which nothing goes but requests that only read
	IPv6  bool        `json:"ipv6,omitempty"`  // by this too, where a host is known so; else by IPv4 alone
}

type NetworkMode uint8

const (
	NetworkNone NetworkMode = iota
	NetworkHosts
)

var networkNames = []string{"none", "hosts"}

func (m NetworkMode) String() string                { return name(m, networkNames) }
func (m NetworkMode) MarshalText() ([]byte, error)  { return []byte(m.String()), nil }
func (m *NetworkMode) UnmarshalText(b []byte) error { return parse(m, networkNames, b) }

// Isolation is the least separation from the host that will do.
type Isolation uint8

const (
	Containerized Isolation = iota // own process table, network, mounts and users
	Process                        // a confined process on the host
)

var isolationNames = []string{"containerized", "process"}

func (i Isolation) String() string                { return name(i, isolationNames) }
func (i Isolation) MarshalText() ([]byte, error)  { return []byte(i.String()), nil }
func (i *Isolation) UnmarshalText(b []byte) error { return parse(i, isolationNames, b) }

// Limits bound one run. Zero means the driver's own default, never "unlimited".
type Limits struct {
	Wall   time.Duration `json:"wall,omitzero"`
	Grace  time.Duration `json:"grace,omitzero"`  // between asking a process to end and killing it
	Output int64         `json:"output,omitzero"` // bytes kept of each stream
	Memory int64         `json:"memory,omitzero"` // bytes of address space
	Pids   int64         `json:"pids,omitzero"`
	Files  int64         `json:"files,omitzero"` // open descriptors
	Size   int64         `json:"size,omitzero"`  // bytes of one file
	Disk   int64         `json:"disk,omitzero"`  // bytes written to files in all
	CPU    time.Duration `json:"cpu,omitzero"`   // time on the processors, of all processes together
}

// name and parse are the text of the small enumerations above. A value that is
// none of them prints as such and is refused.
func name[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("invalid(%d)", v)
}

func parse[T ~uint8](v *T, names []string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("%q is none of %v", b, names)
	}
	*v = T(i)
	return nil
}
