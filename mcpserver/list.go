package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// pageSize is how many entries of a list go out at once.
const pageSize = 200

// raw is a result as its bytes: the SDK's types lose what they do not know.
type raw struct {
	mcp.ResultBase
	json json.RawMessage
}

func (r *raw) MarshalJSON() ([]byte, error) { return r.json, nil }

// listed is a page of a list. It is the caller's own, and nobody else is to be shown it.
func (x *exchange) listed(key string, entries []json.RawMessage, next string) (mcp.Result, error) {
	out := map[string]any{key: entries}
	if next != "" {
		out["nextCursor"] = next
	}
	if x.modern {
		out["resultType"], out["ttlMs"], out["cacheScope"] = "complete", 0, "private"
		out["_meta"] = map[string]any{metaServer: serverInfo()}
	}
	b, err := wire.Plain(out)
	return &raw{json: b}, err
}

// page is the part of a list, in order of names, that comes after a cursor.
func page[T any](all []T, name func(T) string, cursor string) (part []T, next string, err error) {
	from := 0
	if cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		after, ours := strings.CutPrefix(string(last), cursorMark)
		if err != nil || !ours || after == "" {
			return nil, "", writ.Fail(writ.Invalid, "the cursor is not one of this list; leave it out to begin anew", nil)
		}
		from = sort.Search(len(all), func(i int) bool { return name(all[i]) > after })
	}
	part = all[from:]
	if len(part) > pageSize {
		part = part[:pageSize]
		next = base64.RawURLEncoding.EncodeToString([]byte(cursorMark + name(part[pageSize-1])))
	}
	return part, next, nil
}

// cursorMark is before the last name of a page. That it is there tells a cursor from what
// somebody made up; the name may be gone by then.
const cursorMark = "after "

// toolEntry is a tool as a client sees it.
type toolEntry struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Hints       *hints          `json:"annotations,omitempty"`
}

type hints struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// mayList refuses a list to a stopped agent, as its calls are refused, and gives servers
// that were just started a moment.
func (x *exchange) mayList(ctx context.Context) error {
	if err := x.engine.Welcome(x.who); err != nil {
		return err
	}
	x.engine.Settled(ctx)
	return nil
}

// listTools lists what the caller may use, and nothing else.
func listTools(x *exchange, ctx context.Context, req mcp.Request, _ mcp.MethodHandler, _ string) (mcp.Result, error) {
	cursor := ""
	if p, ok := req.GetParams().(*mcp.ListToolsParams); ok && p != nil {
		cursor = p.Cursor
	}
	if err := x.mayList(ctx); err != nil {
		return nil, err
	}
	session := ""
	if x.engine.Progressive(x.who.Agent) { // otherwise a list is no reason to open one
		scope, err := x.scope(ctx)
		if err != nil {
			return nil, err
		}
		session = x.engine.SessionOf(x.who, scope)
	}
	shown, err := x.engine.Disclosed(x.who.Agent, session)
	if err != nil {
		return nil, err
	}
	tools, next, err := page(shown, func(t *tool.Tool) string { return t.Name }, cursor)
	if err != nil {
		return nil, err
	}
	entries := []json.RawMessage{}
	if cursor == "" && !x.modern {
		entries = append(entries, resumeEntry)
	}
	for _, t := range tools {
		e, err := wire.Plain(x.entry(ctx, t))
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return x.listed("tools", entries, next)
}

func (x *exchange) entry(ctx context.Context, t *tool.Tool) toolEntry {
	e := toolEntry{Name: t.Name, Title: t.Title, Description: t.Description, Input: t.Schema}
	if isObject(t.Output) {
		e.Output = t.Output
	}
	if h := t.Hints; h != (tool.Hints{}) {
		e.Hints = &hints{h.ReadOnly, h.Destructive, h.Idempotent, h.OpenWorld}
	}
	if err := x.engine.Unavailable(ctx, x.who.Agent, t.Name); err != nil {
		_, why := writ.Public(err)
		e.Description = fmt.Sprintf("(not available: %s) %s", why, e.Description)
	}
	return e
}

// isObject reports whether a schema is one of objects: clients take no other for results.
func isObject(schema json.RawMessage) bool {
	m, ok := object(schema)
	return ok && text(m["type"]) == "object"
}

var resumeEntry = json.RawMessage(`{"name":"` + resumeName + `","title":"Wait for a person's answer",` +
	`"description":"Wait for the outcome of a call that a person has to approve. Give the request's id from the approval_pending message.",` +
	`"inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The request, call_…"}},"required":["id"],"additionalProperties":false},` +
	`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)
