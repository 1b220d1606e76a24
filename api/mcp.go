package api

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/mcpserver"
)

// mcpPath is where the Model Context Protocol is spoken. It is no row of the table: its
// messages, and its errors, are not the API's.
const mcpPath = "/mcp"

// mcpRoute is for agents, like the rest; who asks, and that they have not too many under
// way, is seen to as on every route.
var mcpRoute = &route{path: mcpPath, doors: bothDoors, who: agents, raw: true, stream: func(x *exchange) error {
	x.mcp.Serve(x.w, x.r, x.who, mcpserver.Guard{
		Again:  x.sameCaller,
		Stream: func() (func(), error) { return x.beginStream(x.rt.door, x.engine.Root(x.who.Agent)) },
	})
	return nil
}}

// sameCaller asks again who the caller is: what it showed may have expired or been
// revoked, or be another agent's by now.
func (x *exchange) sameCaller() error {
	who, err := x.caller(x.r.Header.Values("Authorization"))
	if err == nil && who != x.who {
		err = writ.Fail(writ.Unauthenticated, "who you are has changed; begin again", nil)
	}
	return err
}
