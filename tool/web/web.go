// Package web is the web family: http_request, web_fetch, html_extract and
// web_search. They run in the daemon's process and reach out by the broker alone,
// which resolves, checks and dials: every request, and every hop of a redirect, is
// held to the host and the class that were decided on. Nothing here has a
// connection, a cookie or a credential of its own, and whatever comes back is
// untrusted: it is bounded, decoded and shown, never obeyed.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Way is how one call reaches out: it holds each request to what its writ says of
// hosts and of its class. It follows no redirect.
type Way interface {
	RoundTrip(*http.Request) (*http.Response, error)
	Close() error
}

// Options are what the family needs of its engine.
type Options struct {
	Reach  func(writ.Writ) (Way, error) // nil: the tools can be listed and not run
	Search Searcher                     // nil: the same of web_search
}

// Tools are the tools of the family.
func Tools(o Options) ([]*tool.Tool, error) {
	f := family{o}
	var out []*tool.Tool
	for _, d := range []struct {
		definition tool.Definition
		run        tool.Func
	}{{requestDefinition, f.request}, {fetchDefinition, f.fetch}, {extractDefinition, f.extract}, {searchDefinition, f.search}} {
		t, err := tool.New(d.definition, answered(d.run))
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

type family struct{ o Options }

// reach is the way out of a call.
func (f family) reach(w writ.Writ) (Way, error) {
	if f.o.Reach == nil {
		return nil, writ.Fail(writ.Internal, "there is no way out of this program", nil)
	}
	return f.o.Reach(w)
}

// define is what all of the family have in common: they touch nothing of this machine,
// and reach the host that an argument names.
func define(d tool.Definition) tool.Definition {
	d.Category, d.Tier, d.Runs, d.Runner = action.Web, "cheap", tool.InProcess, tool.Runner{Kind: tool.Builtin}
	d.Brokered, d.Untrusted = true, true
	d.Policy = policy.Policy{
		Risk: action.Low, Files: policy.Files{Read: policy.Globs{Stance: policy.None}, Write: policy.Globs{Stance: policy.None}},
		Network: policy.Network{Stance: policy.All}, Env: policy.Env{Stance: policy.None}, Exec: policy.None,
	}
	return d
}

func example(what, args string) tool.Example {
	return tool.Example{What: what, Args: json.RawMessage(args)}
}

// failure is what a model can act on.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

func failf(format string, args ...any) error { return failure{fmt.Sprintf(format, args...)} }

// answered makes sure that nothing starts without its writ, and makes a result of a
// failure.
func answered(run tool.Func) tool.Func {
	return func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		if !w.Valid() {
			return writ.Result{}, writ.Fail(writ.Internal, "there is no writ for this call", nil)
		}
		res, err := run(ctx, w)
		var f failure
		if errors.As(err, &f) {
			return writ.Result{Content: f.text, IsError: true}, nil
		}
		return res, err
	}
}

// decode reads arguments that the schema has already been held against.
func decode(w writ.Writ, into any) error {
	if err := json.Unmarshal([]byte(w.Call().Args), into); err != nil {
		return writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	return nil
}
