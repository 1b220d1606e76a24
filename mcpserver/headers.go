package mcpserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
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
	head, body := x.r.Header.Values("Mcp-Protocol-Version"), text(x.msg.meta[metaVersion])
	if len(head) > 1 {
		return fault(codeHeaderMismatch, "there are %d Mcp-Protocol-Version headers", len(head))
	}
	said := ""
	if len(head) == 1 {
		said = head[0]
	}
	if x.modern = said >= modernFrom || body >= modernFrom; !x.modern {
		if said != "" && !slices.Contains(versions, said) && x.msg.method != "initialize" {
			return unsupported(said)
		}
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
		return fault(codeParams, "params._meta has no %s", metaVersion)
	case said != body:
		return fault(codeHeaderMismatch, "the header Mcp-Protocol-Version and params._meta do not agree")
	case !slices.Contains(versions, body):
		return unsupported(body)
	}
	if fail := x.sameHeaders(); fail != nil {
		return fail
	}
	if _, ok := object(x.msg.meta[metaCapabilities]); !ok {
		return fault(codeParams, "params._meta has no %s", metaCapabilities)
	}
	return nil
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
	for name, value := range want {
		got := x.r.Header.Values(name)
		if len(got) != 1 || got[0] != value {
			return fault(codeHeaderMismatch, "the header %s and the message do not agree", name)
		}
	}
	return nil
}

func unsupported(asked string) *rpcError {
	data, _ := json.Marshal(map[string]any{"supported": versions, "requested": clip(asked)})
	return &rpcError{Code: codeVersion, Message: "this version of the protocol is not spoken here", Data: data}
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// deadlines lets no client hold a write of the SDK's for ever.
type deadlines struct{ http.ResponseWriter }

func (d deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d deadlines) Write(b []byte) (int, error) {
	c := http.NewResponseController(d.ResponseWriter)
	c.SetWriteDeadline(time.Now().Add(unread))
	defer c.SetWriteDeadline(time.Time{})
	return d.ResponseWriter.Write(b)
}
