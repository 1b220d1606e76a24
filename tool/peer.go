package tool

import (
	"context"
	"encoding/json"
)

// Peer is who made a call, as far as the tool may speak to it while it runs. Messages
// are of the Model Context Protocol, as their bytes.
type Peer interface {
	Progress(params json.RawMessage) // of notifications/progress; whose token it is, the peer knows
	Log(params json.RawMessage)      // of notifications/message
	Round() Round
	// Ask puts a request to the caller's client, and returns its result.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// Round is what a client sent along with a call for the server behind the tool.
type Round struct {
	Modern bool            // requests stand alone: the client cannot be asked, and makes the call again
	Inputs json.RawMessage // its answers to what was asked before
	State  json.RawMessage // what the server gave it to keep, as a JSON string
	Meta   json.RawMessage // of the request: what the client can do, and wants to hear
}

type peerKey struct{}

// WithPeer lets a tool that runs under ctx speak to p. It carries no authority: who
// calls, and what was decided, is in the writ.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf is who listens to a call; nil: nobody.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}
