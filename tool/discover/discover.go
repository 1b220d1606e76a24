// Package discover is the discovery tools: an agent with many tools sees a line of
// each, and loads those that it needs. What is loaded belongs to a session.
package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/disclose"
	"github.com/writ-run/writ/tool"
)

// Source is what there is to discover.
type Source interface {
	// Index is of the tools that an agent may use.
	Index(agent string) (*disclose.Index, error)
	// Session has what is loaded in a session.
	Session(session string) *disclose.Session
	// Budget is how many tokens a page of the list may take.
	Budget() int
	// Loaded is told that what is loaded in a session changed.
	Loaded(session string)
}

// Tools makes the family.
func Tools(src Source) ([]*tool.Tool, error) {
	runs := map[string]func(Source, writ.Call, args) (string, error){
		disclose.ListTools: list, disclose.LoadTool: load, disclose.LoadResource: resource,
	}
	var out []*tool.Tool
	for _, e := range disclose.DiscoveryTools() {
		run := runs[e.Name]
		t, err := tool.New(tool.Definition{
			Name: e.Name, Title: e.Title, Description: e.Description, Category: action.Other, Action: action.Other.Default(), Class: writ.ClassNone, Tier: e.Tier,
			Schema: e.Schema, Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.Builtin},
			Hints: tool.Hints{ReadOnly: new(true), OpenWorld: new(false)},
		}, func(_ context.Context, w writ.Writ) (writ.Result, error) {
			var a args
			c := w.Call()
			if err := json.Unmarshal([]byte(c.Args), &a); err != nil {
				return writ.Result{}, err
			}
			text, err := run(src, c, a)
			if err != nil {
				_, msg := writ.Public(err)
				return writ.Result{Content: msg, IsError: true}, nil
			}
			return writ.Result{Content: text}, nil
		})
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

type args struct {
	Query    string `json:"query"`
	Cursor   string `json:"cursor"`
	Tool     string `json:"tool_name"`
	Resource string `json:"resource_id"`
}

func list(src Source, c writ.Call, a args) (string, error) {
	index, err := src.Index(c.Agent)
	if err != nil {
		return "", err
	}
	page, err := index.List(a.Query, a.Cursor, src.Budget())
	return page.Text, err
}

// found is a tool that the agent may use; another is not there for it.
func found(src Source, c writ.Call, name string) (*disclose.Entry, error) {
	index, err := src.Index(c.Agent)
	if err != nil {
		return nil, err
	}
	e, ok := index.Lookup(name)
	if !ok {
		var near []string
		for _, h := range index.Search(name, 5) {
			near = append(near, h.Entry.Name)
		}
		return nil, tool.Missing(name, near)
	}
	return e, nil
}

func load(src Source, c writ.Call, a args) (string, error) {
	e, err := found(src, c, a.Tool)
	if err != nil {
		return "", err
	}
	s := src.Session(c.Session)
	was := s.Version()
	gone, err := s.Load(e)
	if s.Version() != was {
		src.Loaded(c.Session)
	}
	if err != nil {
		return "", err
	}
	text := e.Full()
	if len(gone) > 0 {
		text += fmt.Sprintf("\n\nUnloaded to make room: %s.", strings.Join(gone, ", "))
	}
	return text, nil
}

func resource(src Source, c writ.Call, a args) (string, error) {
	e, err := found(src, c, a.Tool)
	if err != nil {
		return "", err
	}
	return e.Resource(a.Resource)
}
