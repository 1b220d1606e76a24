package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Members of _meta that a request which stands alone carries.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// negotiated finds out which version a message speaks. Where headers say what the
// body says too, they must agree: a proxy that decides by the one and a server that
// acts on the other would be two decisions.
func (x *exchange) negotiated() *rpcError {
	if fail := x.patient(); fail != nil {
		return fail
	}
	body := text(x.msg.meta[metaVersion])
	said, fail := x.version()
	if fail != nil {
		return fail
	}
	if said != "" && body != "" && said != body {
		return fault(codeHeaderMismatch, "the header MCP-Protocol-Version is %s and params._meta says %s; send the same", clip(said), clip(body))
	}
	if said != "" && !slices.Contains(versions, said) && x.msg.method != "initialize" {
		return unsupported(said)
	}
	if x.modern = said >= modernFrom || body >= modernFrom; !x.modern {
		return nil
	}
	if x.msg.method == "" {
		return fault(codeRequest, "nothing was asked of the client")
	}
	if x.msg.id == nil { // a notification carries what it likes
		return x.sameHeaders()
	}
	switch {
	case x.msg.meta[metaVersion] == nil:
		return fault(codeParams, "params._meta has no %s; with the header MCP-Protocol-Version: %s a request has it", metaVersion, said)
	case !slices.Contains(versions, body):
		return unsupported(body)
	case said == "":
		return missing("MCP-Protocol-Version", body)
	}
	if fail := x.sameHeaders(); fail != nil {
		return fail
	}
	if _, ok := object(x.msg.meta[metaCapabilities]); !ok {
		return fault(codeParams, "params._meta has no %s", metaCapabilities)
	}
	return nil
}

// version is what the header says that the request speaks; empty: nothing.
func (x *exchange) version() (string, *rpcError) {
	head := x.r.Header.Values("Mcp-Protocol-Version")
	switch len(head) {
	case 0:
		return "", nil
	case 1:
		return head[0], nil
	}
	return "", fault(codeHeaderMismatch, "there are %d Mcp-Protocol-Version headers", len(head))
}

// sameHeaders holds what headers say of a message against the message.
func (x *exchange) sameHeaders() *rpcError {
	want := map[string]string{"Mcp-Method": x.msg.method}
	switch x.msg.method {
	case "tools/call", "prompts/get":
		want["Mcp-Name"] = text(x.msg.params["name"])
	case "tasks/get", "tasks/update", "tasks/cancel":
		want["Mcp-Name"] = text(x.msg.params["taskId"])
	case "resources/read":
		want["Mcp-Name"] = text(x.msg.params["uri"])
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got := x.r.Header.Values(name)
		switch {
		case len(got) == 0:
			return missing(name, want[name])
		case len(got) > 1:
			return fault(codeHeaderMismatch, "there are %d headers %s; send one", len(got), name)
		case decoded(name, got[0]) != want[name]:
			return fault(codeHeaderMismatch, "the header %s is %q and the message says %q; send the same", name, clip(got[0]), clip(want[name]))
		}
	}
	return nil
}

// decoded is what a header says. A name that is not plain ASCII is sent as =?base64?…?=,
// and what looks so never stands for itself: whoever is in between would read another
// name.
func decoded(header, said string) string {
	inner, begins := strings.CutPrefix(said, "=?base64?")
	inner, ends := strings.CutSuffix(inner, "?=")
	if header != "Mcp-Name" || !begins || !ends {
		return said
	}
	if b, err := base64.StdEncoding.Strict().DecodeString(inner); err == nil {
		return string(b)
	}
	return "\x00" // no name
}

// missing is the error of a header that a message has to come with.
func missing(name, value string) *rpcError {
	return fault(codeHeaderMismatch, "the header %s is missing; send %s: %s", name, name, clip(value))
}

func unsupported(asked string) *rpcError {
	data, _ := json.Marshal(map[string]any{"supported": versions, "requested": clip(asked)})
	return &rpcError{Code: codeVersion, Message: fmt.Sprintf("protocol version %q is not spoken here; use one of %s", clip(asked), strings.Join(versions, ", ")), Data: data}
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
