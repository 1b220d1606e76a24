package api

// mcpPath is where the Model Context Protocol is spoken. It is no row of the table: its
// messages, and its errors, are not the API's.
const mcpPath = "/mcp"

// mcpRoute is for agents, like the rest; who asks, and that they have not too many under
// way, is seen to as on every route.
var mcpRoute = &route{path: mcpPath, doors: bothDoors, who: agents, raw: true, stream: func(x *exchange) error {
	x.mcp.Serve(x.w, x.r, x.who)
	return nil
}}
