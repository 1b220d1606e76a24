package approval

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Shown is a request as a person sees it: everything the digest binds.
type Shown struct {
	Agent     string           `json:"agent"`
	Chain     []string         `json:"chain,omitempty"` // the agent and those it was delegated by
	Person    string           `json:"acts_for,omitempty"`
	Session   string           `json:"session"`
	Task      string           `json:"task"`
	Tool      string           `json:"tool"`
	Args      json.RawMessage  `json:"args"`
	Original  json.RawMessage  `json:"original,omitempty"` // what the agent asked for, where a person edited it
	Dir       string           `json:"dir"`
	Action    string           `json:"action"`
	Risk      string           `json:"risk"`
	Class     string           `json:"class"`
	Dangerous bool             `json:"dangerous,omitempty"`
	Reasons   []writ.Reason    `json:"reasons"`
	Confine   writ.Confinement `json:"confinement"`
	Policy    writ.Digest      `json:"policy"`
	Base      writ.Digest      `json:"base"`
	Resolved  []ResolvedName   `json:"resolved,omitempty"`
	Inputs    []Input          `json:"inputs,omitempty"`
	Code      bool             `json:"code,omitempty"`
}

// ResolvedName is a path or host of the arguments and what it really names.
type ResolvedName struct {
	Argument string `json:"argument"`
	Is       string `json:"is"`
	Path     bool   `json:"path,omitempty"`
}

// Input is a file that the arguments name, as it was when a person was asked.
type Input struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"` // empty: it is not there, or Note says why it is not bound
	Note   string `json:"note,omitempty"`
}

// bound is the part of what was shown that its row, and the files it names, are held
// against: all that answering and taking up need.
type bound struct {
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	Task      string          `json:"task"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`
	Dir       string          `json:"dir"`
	Class     string          `json:"class"`
	Dangerous bool            `json:"dangerous"`
	Resolved  []ResolvedName  `json:"resolved"`
	Inputs    []Input         `json:"inputs"`
}

func (s *Shown) bound() *bound {
	return &bound{s.Agent, s.Session, s.Task, s.Tool, s.Args, s.Dir, s.Class, s.Dangerous, s.Resolved, s.Inputs}
}

// unchanged says where a file that a request names is not as it was when it was asked.
func (d *Desk) unchanged(b *bound) error {
	if slices.Equal(b.Inputs, d.inputs(b.call())) {
		return nil
	}
	return writ.Fail(writ.Changed, "a file that the call names changed since it was asked about; the request is over, and the call has to be made again", nil)
}

// call is what was shown, as far as files and patterns need it.
func (b *bound) call() writ.Call {
	c := writ.Call{Tool: b.Tool, Args: string(b.Args), Dir: b.Dir}
	for _, n := range b.Resolved {
		t := writ.Target{Pointer: n.Argument, Kind: writ.TargetHost, Host: n.Is}
		if n.Path {
			t = writ.Target{Pointer: n.Argument, Kind: writ.TargetPath, Path: n.Is}
		}
		c.Targets = append(c.Targets, t)
	}
	return c
}

func shown(c writ.Call, dec writ.Decision, inputs []Input) Shown {
	s := Shown{
		Agent: c.Agent, Chain: c.Chain, Person: c.Person, Session: c.Session, Task: c.Task, Tool: c.Tool, Args: json.RawMessage(c.Args), Dir: c.Dir,
		Action: dec.Action, Risk: dec.Risk, Class: dec.Class.String(), Dangerous: dec.Dangerous, Reasons: dec.Reasons, Confine: dec.Confine,
		Policy: dec.Policy, Base: dec.Base, Inputs: inputs, Code: c.Code,
	}
	for _, t := range c.Targets {
		s.Resolved = append(s.Resolved, ResolvedName{t.Pointer, t.Is(), t.Kind == writ.TargetPath})
	}
	return s
}

// show seals what a person will see into a request, and works out the digest they
// echo: which request, for what, until when, by how many, with which files as they are.
func (d *Desk) show(i *store.Invocation, c writ.Call, dec writ.Decision, original json.RawMessage) error {
	s := shown(c, dec, d.inputs(c))
	s.Original = original
	plain, err := wire.Plain(s)
	if err != nil {
		return err
	}
	if i.Digest, err = digest(*i, s.Inputs); err != nil {
		return err
	}
	i.Sealed = d.sealed(plain, i.Digest)
	if len(i.Sealed) <= smallShown {
		d.shown.add(i.Digest, opened{i.Sealed, s.bound()})
	}
	return nil
}

func digest(i store.Invocation, inputs []Input) (string, error) {
	files, err := wire.Marshal(inputs)
	if err != nil {
		return "", err
	}
	canonical, err := wire.AppendObject(nil, wire.Str("id", i.ID), wire.Str("asked", i.Asked), wire.Str("subject", i.Subject),
		wire.Str("expires", i.Expires), wire.Int("quorum", int64(i.Quorum)), wire.Str("not_by", i.NotBy), wire.Raw("inputs", files))
	return wire.Digest(string(canonical)).String(), err
}

// sealed encrypts a text, bound to what it belongs to: put beside something else it
// does not open, and nobody without the key makes another.
func (d *Desk) sealed(plain []byte, to string) []byte {
	nonce := make([]byte, d.seal.NonceSize())
	rand.Read(nonce)
	return d.seal.Seal(nonce, nonce, plain, []byte(to))
}

func (d *Desk) open(sealed []byte, to string) ([]byte, error) {
	n := d.seal.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("it is too short")
	}
	return d.seal.Open(nil, sealed[:n], sealed[n:], []byte(to))
}

// unsealed is what an open request shows. One that does not open, or is not what its
// digest says, is an error, so that nobody agrees to what they cannot see.
func (d *Desk) unsealed(i store.Invocation) (*Shown, error) {
	var s Shown
	if err := d.unseal(i, &s); err != nil {
		return nil, err
	}
	if err := shows(i, s.bound()); err != nil {
		return nil, err
	}
	return &s, nil
}

// opened is what opening something sealed gave, so that what was sealed here a moment ago
// need not be opened.
type opened struct {
	sealed []byte
	bound  *bound
}

// smallShown is how large what is remembered may be.
const smallShown = 16 << 10

// boundBy is the part of it that counts for an answer, and no less checked.
func (d *Desk) boundBy(i store.Invocation) (*bound, error) {
	b := &bound{}
	if o, ok := d.shown.get(i.Digest); ok && bytes.Equal(o.sealed, i.Sealed) {
		b = o.bound
	} else if err := d.unseal(i, b); err != nil {
		return nil, err
	}
	if err := shows(i, b); err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Desk) unseal(i store.Invocation, into any) error {
	plain, err := d.open(i.Sealed, i.Digest)
	if err == nil {
		err = json.Unmarshal(plain, into)
	}
	if err != nil {
		return altered(i, err)
	}
	return nil
}

// shows holds a row against what it shows.
func shows(i store.Invocation, b *bound) error {
	want, err := digest(i, b.Inputs)
	if err != nil || want != i.Digest || b.Agent != i.Agent || b.Tool != i.Tool || b.Session != i.Session || b.Task != i.Task ||
		b.Class != i.Class || b.Dangerous != i.Dangerous || wire.Digest(string(b.Args)).String() != i.ArgsDigest {
		return altered(i, err)
	}
	return nil
}

func altered(i store.Invocation, cause error) error {
	return writ.Fail(writ.Internal, fmt.Sprintf("request %s is not as it was made, and allows nothing; cancel it and check the store", i.ID), cause)
}
