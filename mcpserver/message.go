package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// message is one JSON-RPC message as it arrived, parsed once and strictly. Members
// are found by their exact names: a reader that folds case or takes the last of two
// would see another message than the one that is decided about.
type message struct {
	id     json.RawMessage // of a request or a response; nil: a notification
	method string          // empty: a response
	params members
	meta   members // params._meta
}

// members are the members of an object, each as its bytes.
type members map[string]json.RawMessage

// JSON-RPC and MCP error codes.
const (
	codeParse          = -32700
	codeRequest        = -32600
	codeMethod         = -32601
	codeParams         = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeCapability     = -32021
	codeVersion        = -32022
)

// rpcError is an error of the protocol, not of a tool.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
	status  int             // of HTTP, where the error is the whole answer; 0: 400
}

func (e *rpcError) Error() string { return e.Message }

func fault(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// parse reads one message.
func parse(raw []byte) (message, *rpcError) {
	if err := wire.Check(raw); err != nil {
		_, why := writ.Public(err)
		return message{}, fault(codeParse, "%s", why)
	}
	var m message
	top, ok := object(raw)
	if !ok {
		return m, fault(codeRequest, "send one JSON-RPC message, an object; batches are not taken")
	}
	if text(top["jsonrpc"]) != "2.0" {
		return m, fault(codeRequest, `a message has "jsonrpc": "2.0"`)
	}
	if id, there := top["id"]; there {
		if !validID(id) {
			return m, fault(codeRequest, "an id is a string or a whole number")
		}
		m.id = id
	}
	method, there := top["method"]
	if !there {
		return m, nil
	}
	if m.method = text(method); m.method == "" {
		return m, fault(codeRequest, "method is a string")
	}
	if p, there := top["params"]; there {
		if m.params, ok = object(p); !ok {
			return m, fault(codeParams, "params is an object")
		}
	}
	if meta, there := m.params["_meta"]; there {
		if m.meta, ok = object(meta); !ok {
			return m, fault(codeParams, "params._meta is an object")
		}
	}
	return m, nil
}

// validID takes what the protocol takes: no null, no fraction. wire has seen to it
// that a number survives.
func validID(id json.RawMessage) bool {
	switch c := id[0]; {
	case c == '"':
		return len(id) <= 256
	case c == '-' || '0' <= c && c <= '9':
		return !strings.ContainsAny(string(id), ".eE")
	}
	return false
}

func object(raw json.RawMessage) (members, bool) {
	var m members
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil || m == nil {
		return nil, false
	}
	return m, true
}

// text is a string's value, or "" of anything else.
func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
