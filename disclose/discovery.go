package disclose

import (
	"encoding/json"
	"fmt"

	"github.com/writ-run/writ"
)

// The discovery tools. They are always callable, and not counted among an agent's tools.
const (
	ListTools    = "list_tools"
	LoadTool     = "load_tool"
	LoadResource = "load_tool_resource"
)

// Discovery reports whether name is one of the discovery tools.
func Discovery(name string) bool {
	return name == ListTools || name == LoadTool || name == LoadResource
}

// DiscoveryTools is what a model reads of the discovery tools.
func DiscoveryTools() []*Entry {
	return []*Entry{
		{
			Name: ListTools, Title: "List tools", Category: "other", Tier: "cheap",
			Description: "Lists the tools you may use, one line each, or those that match a query, best first. A tool has to be loaded with load_tool before it can be called.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"Words to look for; leave it out to list all tools by name.","maxLength":400,"x-writ-text":true},"cursor":{"type":"string","description":"From the end of the page before.","maxLength":64,"x-writ-text":true}},"additionalProperties":false}`),
		},
		{
			Name: LoadTool, Title: "Load a tool", Category: "other", Tier: "cheap",
			Description: "Loads a tool: returns its description, the schema of its arguments, examples and failure modes, and makes it callable. Tools loaded long ago are unloaded when room is needed; load them again to use them.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string","description":"A name from list_tools.","minLength":1,"maxLength":64}},"required":["tool_name"],"additionalProperties":false}`),
		},
		{
			Name: LoadResource, Title: "Read about a tool", Category: "other", Tier: "cheap",
			Description: "Returns one resource of a tool, such as a guide or more examples. load_tool says which there are; the tool need not be loaded.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string","description":"A name from list_tools.","minLength":1,"maxLength":64},"resource_id":{"type":"string","description":"The name of the resource.","minLength":1,"maxLength":200,"x-writ-text":true}},"required":["tool_name","resource_id"],"additionalProperties":false}`),
		},
	}
}

// NotLoaded is the error for a call of a tool that is there and not loaded. It is only
// for tools that the caller may see.
func NotLoaded(name string) error {
	name = label(name, 64)
	return writ.Fail(writ.Conflict, fmt.Sprintf("%s is not loaded; call %s with tool_name %s, then call it again", name, LoadTool, name), nil)
}
