package engine

import (
	"slices"
	"sync"

	"github.com/writ-run/writ/disclose"
	"github.com/writ-run/writ/tool"
)

// disclosure is which tools are loaded in which session. It is the discovery tools'
// source.
type disclosure struct {
	e *Engine

	mu       sync.Mutex
	sessions map[string]*disclose.Session
	told     []func(session string)
}

func (d *disclosure) settings() disclose.Settings { return d.e.at().cfg.Disclosure }

func (d *disclosure) Budget() int { return d.settings().L1Budget }

// Index is of what an agent may use, made once for each rules.
func (d *disclosure) Index(agent string) (*disclose.Index, error) {
	r := d.e.at()
	if v, ok := r.indexes.Load(agent); ok {
		return v.(*disclose.Index), nil
	}
	var entries []*disclose.Entry
	for _, t := range r.catalog.All() {
		if r.decider.Visible(agent, t.Name) && !disclose.Discovery(t.Name) && !r.methods[t.Name] {
			entries = append(entries, entryOf(t))
		}
	}
	x, err := disclose.NewIndex(entries)
	if err != nil {
		return nil, err
	}
	v, _ := r.indexes.LoadOrStore(agent, x)
	return v.(*disclose.Index), nil
}

func entryOf(t *tool.Tool) *disclose.Entry {
	e := &disclose.Entry{
		Name: t.Name, Title: t.Title, Description: t.Description, Category: string(t.Category), Tier: t.Tier, Schema: t.Schema, Failures: t.Failures,
	}
	for _, x := range t.Examples {
		e.Examples = append(e.Examples, disclose.Example{What: x.What, Args: x.Args})
	}
	for _, r := range []disclose.Resource{
		{Name: "capability", Title: "What it can do", Text: t.Docs.Capability},
		{Name: "inputs", Title: "What it takes", Text: t.Docs.Inputs},
		{Name: "outputs", Title: "What it gives", Text: t.Docs.Outputs},
		{Name: "output_schema", Title: "The schema of its results", Text: string(t.Output)},
	} {
		if r.Text != "" {
			e.Resources = append(e.Resources, r)
		}
	}
	return e
}

func (d *disclosure) Session(id string) *disclose.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[id]
	if s == nil {
		if d.sessions == nil {
			d.sessions = map[string]*disclose.Session{}
		}
		s = disclose.NewSession(d.settings())
		d.sessions[id] = s
	}
	return s
}

func (d *disclosure) forget(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
}

func (d *disclosure) Loaded(session string) {
	d.mu.Lock()
	told := slices.Clone(d.told)
	d.mu.Unlock()
	for _, f := range told {
		f(session)
	}
}

// OnLoaded has f told of sessions in which another set of tools is loaded now.
func (e *Engine) OnLoaded(f func(session string)) {
	e.disclosed.mu.Lock()
	defer e.disclosed.mu.Unlock()
	e.disclosed.told = append(e.disclosed.told, f)
}

// Disclosed lists what a model of an agent is shown in a session: all that it may use;
// or, where that is too much at once, the discovery tools and what it has loaded.
func (e *Engine) Disclosed(agent, session string) ([]*tool.Tool, error) {
	methods := e.at().methods // which clients have other ways to call
	all := slices.DeleteFunc(e.Tools(agent), func(t *tool.Tool) bool { return methods[t.Name] })
	if !e.Progressive(agent) {
		return slices.DeleteFunc(all, func(t *tool.Tool) bool { return disclose.Discovery(t.Name) }), nil
	}
	s, err := e.inStep(agent, session)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(t *tool.Tool) bool { return !s.Callable(t.Name) }), nil
}

// NotLoaded is the error of a call by a model of a tool that it may use and has not
// loaded; nil where it has, or need not.
func (e *Engine) NotLoaded(agent, session, name string) error {
	t, err := e.Tool(agent, name)
	if err != nil || disclose.Discovery(name) || !e.Progressive(agent) {
		return nil // the gate has its own word for what is not there
	}
	s, err := e.inStep(agent, session)
	if err == nil && !s.Callable(t.Name) {
		err = disclose.NotLoaded(t.Name)
	}
	return err
}

// ContextFilled takes a client's word for how full, in percent, its model's context is.
func (e *Engine) ContextFilled(session string, percent float64) error {
	s := e.disclosed.Session(session)
	was := s.Version()
	_, err := s.Report(percent)
	if s.Version() != was {
		e.disclosed.Loaded(session)
	}
	return err
}

// inStep is a session's set, without what is not there any more.
func (e *Engine) inStep(agent, session string) (*disclose.Session, error) {
	index, err := e.disclosed.Index(agent)
	if err != nil {
		return nil, err
	}
	s := e.disclosed.Session(session)
	s.Sync(index)
	return s, nil
}

// Progressive reports whether a model of an agent is shown its tools one by one.
func (e *Engine) Progressive(agent string) bool {
	r := e.at()
	switch r.cfg.Disclosure.Active {
	case disclose.Always:
		return true
	case disclose.Never:
		return false
	}
	if len(r.catalog.All()) <= disclose.Many { // nobody can have more
		return false
	}
	index, err := e.disclosed.Index(agent)
	return err != nil || r.cfg.Disclosure.On(index.Len())
}
