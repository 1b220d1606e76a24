package disclose

import "encoding/json"

// Cost is what the tools of an agent take of its context, in tokens.
type Cost struct {
	All  int // every definition in a tool list, as MCP sends it
	List int // the discovery tools and the first page of the list
	Load int // in addition, what was loaded: its definition in the tool list, and its full text
}

// Costs compares both ways to tell a model of the same tools, with some of them loaded.
func (x *Index) Costs(s Settings, load ...*Entry) Cost {
	var c Cost
	for _, e := range x.entries {
		c.All += Tokens(e.listed())
	}
	for _, e := range DiscoveryTools() {
		c.List += Tokens(e.listed())
	}
	c.List += Tokens(x.page("", x.Search("", 0), 0, s.L1Budget).Text)
	for _, e := range load {
		c.Load += Tokens(e.listed()) + Tokens(e.Full())
	}
	return c
}

// listed is the tool in a list of MCP.
func (e *Entry) listed() string {
	schema := e.Schema
	if !json.Valid(schema) {
		schema = json.RawMessage("{}")
	}
	b, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}{e.Name, e.Title, e.Description, schema})
	if err != nil {
		return "" // strings and valid JSON always marshal
	}
	return string(b)
}
