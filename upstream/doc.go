// Package upstream is writ as a client of MCP servers: connecting to one, reading
// what it offers, and making calls of it, over a pair of pipes or over streamable
// HTTP.
//
// A server is an adversary like any other (threat model, §0). What it sends is
// bounded in bytes, count and time, and checked strictly; what it asks of writ is
// refused unless the caller of the one call it belongs to takes it; what it says of
// its own tools raises their class and lowers nothing by itself. A server that
// crashes, stalls, floods or lies costs its own callers an error and nobody else
// anything.
//
// The SDK negotiates: which version is spoken, and the handshake of that version.
// Everything that writ forwards goes around it as bytes, because the SDK's types
// drop members they do not know, turn large integers into floats, and fail on
// content of a new kind: a digest over them would not be one of what the server
// said. Streams of notifications go around it too, because it queues without bound
// what a server sends and does not open a stream again that was cut.
//
// The package starts no processes: pipes and an HTTP client are handed to a connection
// by whoever confined them. Client is the one for servers that an operator named.
package upstream
