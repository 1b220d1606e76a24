package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/wire"
)

// Codes of JSON-RPC errors.
const (
	codeRequest  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
)

// message is one JSON-RPC message as it arrived. Its members are parts of the bytes
// it was read from; whoever keeps one copies it.
type message struct {
	id     []byte // nil: a notification
	method string // empty: a response
	params []byte
	result []byte
	fail   []byte
	loose  error // inside, readers could disagree about what it says
}

// parse reads one message strictly. An error means that nothing of it can be
// trusted, not even whom it is for.
func parse(raw []byte) (message, error) {
	var m message
	var version, method []byte
	loose, err := members(raw, func(key, value []byte) {
		switch string(key) {
		case "jsonrpc":
			version = value
		case "id":
			m.id = value
		case "method":
			method = value
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.fail = value
		}
	})
	if err != nil {
		return m, err
	}
	m.loose = loose
	if string(version) != `"2.0"` {
		return m, errors.New(`a message without "jsonrpc": "2.0"`)
	}
	if method != nil {
		if m.method = text(method); m.method == "" {
			return m, errors.New("a message whose method is not a name")
		}
		return m, nil
	}
	if m.id == nil || (m.result == nil) == (m.fail == nil) {
		return m, errors.New("a message that is neither a request nor an answer")
	}
	return m, nil
}

// ServerError is the error that a server answered with, its text made harmless: it
// goes to models and terminals.
type ServerError struct {
	Code    int64
	Message string
	Data    json.RawMessage // as it came; nil where it is absent or too long
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("the server answered with error %d: %s", e.Code, e.Message)
}

// How much of a server's error is kept.
const (
	mostErrorText = 2000
	mostErrorData = 64 << 10
)

func serverError(raw []byte) *ServerError {
	e := &ServerError{Code: codeInternal, Message: "(no message)"}
	if _, err := members(raw, func(key, value []byte) {
		switch string(key) {
		case "code":
			if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
				e.Code = n
			}
		case "message":
			if s := text(value); s != "" {
				e.Message = display.Preview(s, mostErrorText)
			}
		case "data":
			if len(value) <= mostErrorData {
				e.Data = bytes.Clone(value)
			}
		}
	}); err != nil {
		e.Message = "(an error that is not an object)"
	}
	return e
}

// request is a request or, without an id, a notification.
func request(id, method string, params []byte) []byte {
	b := make([]byte, 0, len(params)+len(method)+len(id)+64)
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != "" {
		b = append(wire.AppendString(append(b, `"id":`...), id), ',')
	}
	b = wire.AppendString(append(b, `"method":`...), method)
	if len(params) > 0 {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// answer is a response to a request of the server's.
func answer(id, result []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	return append(append(append(b, `,"result":`...), result...), '}')
}

// refusal is a response that is an error.
func refusal(id []byte, code int64, why string) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = strconv.AppendInt(append(b, `,"error":{"code":`...), code, 10)
	return append(wire.AppendString(append(b, `,"message":`...), why), "}}"...)
}

// oneLine makes a message fit for a line of its own. In JSON a line break stands
// between tokens only, where a space does as well.
func oneLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return append(b, '\n')
}
