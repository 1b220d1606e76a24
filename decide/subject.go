package decide

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// subject is what a person agrees to: the whole call and all it may reach. Every
// field that could change what running it means is in here (I4).
type subject struct {
	Agent      string           `json:"agent"`
	Person     string           `json:"person"`
	Session    string           `json:"session"`
	Task       string           `json:"task"`
	Tool       string           `json:"tool"`
	Definition writ.Digest      `json:"definition"`
	Args       rawJSON          `json:"args"`
	Dir        string           `json:"dir"`
	Targets    []target         `json:"targets"`
	Class      writ.Class       `json:"class"`
	Dangerous  bool             `json:"dangerous"`
	Quorum     int              `json:"quorum"`
	Confine    writ.Confinement `json:"confinement"`
	Policy     writ.Digest      `json:"policy"`
}

type target struct {
	Pointer string `json:"pointer"`
	Path    string `json:"path,omitempty"`
	Host    string `json:"host,omitempty"`
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// Subject is the digest that an approval of this call binds.
func Subject(c writ.Call, d writ.Decision) (writ.Digest, error) {
	s := subject{
		Agent: c.Agent, Person: c.Person, Session: c.Session, Task: c.Task, Tool: c.Tool, Definition: c.Definition,
		Args: rawJSON(c.Args), Dir: c.Dir, Class: d.Class, Dangerous: d.Dangerous, Quorum: d.Quorum, Confine: d.Confine, Policy: d.Policy,
	}
	for _, t := range c.Targets {
		s.Targets = append(s.Targets, target{t.Pointer, t.Path, t.Host})
	}
	text, err := wire.Marshal(s)
	if err != nil {
		return writ.Digest{}, err
	}
	return wire.Digest(text), nil
}
