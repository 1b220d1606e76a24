package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

func listResources(x *exchange, ctx context.Context, req mcp.Request, _ mcp.MethodHandler, _ string) (mcp.Result, error) {
	cursor := ""
	if p, ok := req.GetParams().(*mcp.ListResourcesParams); ok && p != nil {
		cursor = p.Cursor
	}
	return x.listEntries(ctx, "resources", cursor, func(o engine.Offered) []engine.Entry { return o.Resources })
}

func listTemplates(x *exchange, ctx context.Context, req mcp.Request, _ mcp.MethodHandler, _ string) (mcp.Result, error) {
	cursor := ""
	if p, ok := req.GetParams().(*mcp.ListResourceTemplatesParams); ok && p != nil {
		cursor = p.Cursor
	}
	return x.listEntries(ctx, "resourceTemplates", cursor, func(o engine.Offered) []engine.Entry { return o.Templates })
}

func listPrompts(x *exchange, ctx context.Context, req mcp.Request, _ mcp.MethodHandler, _ string) (mcp.Result, error) {
	cursor := ""
	if p, ok := req.GetParams().(*mcp.ListPromptsParams); ok && p != nil {
		cursor = p.Cursor
	}
	return x.listEntries(ctx, "prompts", cursor, func(o engine.Offered) []engine.Entry { return o.Prompts })
}

func (x *exchange) listEntries(ctx context.Context, key, cursor string, of func(engine.Offered) []engine.Entry) (mcp.Result, error) {
	if err := x.mayList(ctx); err != nil {
		return nil, err
	}
	part, next, err := page(of(x.engine.Offered(x.who.Agent)), func(e engine.Entry) string { return e.Key }, cursor)
	if err != nil {
		return nil, err
	}
	entries := []json.RawMessage{}
	for _, e := range part {
		entries = append(entries, e.Raw)
	}
	return x.listed(key, entries, next)
}

func (x *exchange) readResource() {
	uri := text(x.msg.params["uri"])
	x.ofServer(uri, engine.ReadResource, map[string]any{"uri": uri}, nil)
}

// watchResource has a session told when a resource changes. Requests that stand alone
// say so when they listen.
func (x *exchange) watchResource() {
	uri := text(x.msg.params["uri"])
	x.ofServer(uri, engine.WatchResource, map[string]any{"uri": uri}, func() { x.session.watch(uri, true) })
}

func (x *exchange) unwatchResource() {
	uri := text(x.msg.params["uri"])
	x.ofServer(uri, engine.UnwatchResource, map[string]any{"uri": uri}, func() { x.session.watch(uri, false) })
}

// ofServer is a method about one resource.
func (x *exchange) ofServer(uri string, m engine.Method, args map[string]any, then func()) {
	server, err := x.engine.WhoseResource(x.who.Agent, uri)
	switch {
	case then == nil && uri == "":
		x.refuse(x.asAnswer(fault(codeParams, "params.uri is the URI of a resource")))
	case then != nil && x.session == nil:
		x.refuse(&rpcError{Code: codeMethod, Message: "this version of the protocol has no " + x.msg.method + "; use subscriptions/listen", status: 404})
	case err != nil:
		data, _ := wire.Plain(map[string]string{"uri": uri})
		x.refuse(x.asAnswer(&rpcError{Code: codeParams, Message: publicly(err), Data: data}))
	default:
		x.governed(m.Of(server), args, then)
	}
}

func (x *exchange) getPrompt() {
	p, err := x.engine.WhosePrompt(x.who.Agent, text(x.msg.params["name"]))
	if err != nil {
		x.refuse(x.asAnswer(fault(codeParams, "%s", publicly(err))))
		return
	}
	args := map[string]any{"name": p.Own}
	if a, ok := x.msg.params["arguments"]; ok && string(a) != "null" {
		args["arguments"] = a
	}
	x.governed(engine.GetPrompt.Of(p.Server), args, nil)
}

// complete1 is completion/complete: of a prompt's argument, or of a template's.
func (x *exchange) complete1() {
	ref, ok := object(x.msg.params["ref"])
	if !ok {
		x.refuse(x.asAnswer(fault(codeParams, "params.ref is an object")))
		return
	}
	server := ""
	var err error
	switch text(ref["type"]) {
	case "ref/prompt":
		var p engine.Entry
		if p, err = x.engine.WhosePrompt(x.who.Agent, text(ref["name"])); err == nil {
			server = p.Server
			ref["name"], err = wire.Plain(p.Own)
		}
	case "ref/resource":
		for _, e := range x.engine.Offered(x.who.Agent).Templates {
			if e.Key == text(ref["uri"]) {
				server = e.Server
			}
		}
	}
	if err != nil || server == "" {
		x.refuse(x.asAnswer(fault(codeParams, "params.ref is not a prompt or a template that there is")))
		return
	}
	args := map[string]any{"ref": ref, "argument": x.msg.params["argument"]}
	if c, ok := x.msg.params["context"]; ok {
		args["context"] = c
	}
	x.governed(engine.Complete.Of(server), args, nil)
}

// asAnswer is an error that answers a request: in a session like any other answer.
func (x *exchange) asAnswer(e *rpcError) *rpcError {
	if !x.modern {
		e.status = 200
	}
	return e
}

// governed makes a method's call through the gate, and answers with what its server
// said.
func (x *exchange) governed(name string, args map[string]any, then func()) {
	raw, err := wire.Plain(args)
	if err != nil {
		x.refuse(fault(codeInternal, "the call could not be written"))
		return
	}
	x.run(func(ctx context.Context) (json.RawMessage, *rpcError) {
		session, err := x.scope(ctx)
		if err != nil {
			return nil, x.asAnswer(protocolFault(err))
		}
		before, fail := x.resumed(name, raw)
		if fail != nil {
			return nil, fail
		}
		if before != nil && before.Request != "" {
			return x.resumeState(ctx, name, raw, before)
		}
		began := x.engine.Ledger().Time()
		out, err := x.engine.Do(tool.WithPeer(ctx, x), engine.Call{
			Agent: x.who.Agent, Token: x.who.Token, Session: session, Task: text(x.msg.meta[metaTask]), Tool: name, Args: raw, Door: "mcp"})
		if writ.KindOf(err) == writ.Pending {
			return x.pending(ctx, name, raw, began, out, err)
		}
		if asked, ok := out.Metadata["input_required"]; ok && err == nil && x.modern {
			return x.relayInput(name, raw, asked)
		}
		if err == nil && then != nil {
			then()
		}
		return x.finished(out, err)
	})
}

// protocolFault is an error of ours where the protocol has no other place for it.
func protocolFault(err error) *rpcError {
	kind, msg := writ.Public(err)
	data, _ := wire.Plain(map[string]any{metaError: kind})
	return &rpcError{Code: codeRequest, Message: msg, Data: data}
}

// passed is what a server answered to a method, with what the version of the client
// wants besides.
func (x *exchange) passed(result any) (json.RawMessage, *rpcError) {
	raw, err := rawOf(result)
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	m, ok := object(raw)
	if !ok {
		return nil, fault(codeInternal, "the server answered with something that is no result")
	}
	delete(m, "resultType")
	x.disown(m)
	if x.modern {
		for key, value := range map[string]string{"resultType": `"complete"`, "ttlMs": "0", "cacheScope": `"private"`} {
			if _, there := m[key]; (x.msg.method == "resources/read" || key == "resultType") && (!there || key == "cacheScope") {
				m[key] = json.RawMessage(value)
			}
		}
	}
	b, err := wire.Plain(m)
	if err != nil {
		return nil, fault(codeInternal, "the result could not be written")
	}
	return b, nil
}

// rawOf is JSON as it came, or as it was kept.
func rawOf(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	return wire.Plain(v)
}
