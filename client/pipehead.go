package client

import "encoding/json"

// head is what the pipe has to know of a message.
type head struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name    string          `json:"name"`
		URI     string          `json:"uri"`
		Task    string          `json:"taskId"`
		Request json.RawMessage `json:"requestId"`
		Meta    struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func headOf(line []byte) head {
	var m head
	_ = json.Unmarshal(line, &m) // the daemon says what is wrong with it
	return m
}

// inOrder reports whether a message must be through before the next is read.
func (m *head) inOrder() bool { return m.Method == "initialize" || m.ID == nil || m.Method == "" }

// awaited reports whether somebody may wait for an answer to it: to everything but a
// notification and an answer, also to what is no message at all.
func (m *head) awaited() bool {
	notification := m.Method != "" && m.ID == nil
	answer := m.Method == "" && (m.Result != nil || m.Error != nil)
	return !notification && !answer
}

// answerID is the id that an answer to it has: null, where it has none that can be told.
func (m *head) answerID() json.RawMessage {
	if m.ID == nil {
		return json.RawMessage("null")
	}
	return m.ID
}
