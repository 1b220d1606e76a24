// Package external is external_api: a request over a connection that the operator wrote
// down. An agent says which connection, what method and what path below its address;
// scheme, host, port and credentials are the connection's, and the credentials are put on
// where the request leaves this process, so that no agent, box, argument, log or record
// has them (I7). It dials nothing itself: the way out of a call is the engine's.
package external

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/tool"
)

// Name is what the tool is called.
const Name = "external_api"

// Types of connections that are not to a search provider: what external_api takes, and
// what lends git's tools credentials for repositories.
const (
	HTTP = "http"
	Git  = "git"
)

// Connection is one of the operator's, checked.
type Connection struct {
	Name    string
	Type    string // http, git, or the search provider that it leads to
	Base    string // scheme, host, port and prefix, without a slash at the end
	Host    string // the same host and port, in normal form
	Auth    Auth
	Methods []string
	Paths   []string // globs over what an agent gives as the path
	Rate    int      // requests a minute
	Digest  writ.Digest
}

// Way is how a request leaves.
type Way interface {
	http.RoundTripper
	io.Closer // writes down what is to be said of it
}

// Source is the engine's part.
type Source interface {
	// Connection is the one that a call was decided over, as it was then.
	Connection(writ.Writ) (Connection, error)
	// Reach is the way out of a call, Own the one to an address the operator wrote.
	Reach(writ.Writ) (Way, error)
	Own(what, url string) (Way, error)
	Secrets() secret.Set
}

// Client makes requests over connections: it counts them, and keeps access tokens.
type Client struct {
	src    Source
	rates  rates
	tokens tokens
}

// NewClient makes one.
func NewClient(src Source) *Client { return &Client{src: src} }

var schema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["connection","path"],"properties":{
"connection":{"type":"string","minLength":1,"maxLength":64,"x-writ-connection":true,"description":"Name of a connection that the operator set up. One that is not there is answered with those that are."},
"method":{"type":"string","enum":["GET","HEAD","OPTIONS","POST","PUT","PATCH","DELETE"],"default":"GET","x-writ-method":true,"description":"Methods other than GET, HEAD and OPTIONS ask a person; these also ask where the agent's autonomy says so."},
"path":{"type":"string","minLength":1,"maxLength":8192,"x-writ-text":true,"description":"Path below the connection's address, with its query: /v1/things?page=2. No scheme, no host, no dot segments."},
"headers":{"type":"object","maxProperties":32,"additionalProperties":{"type":"string","maxLength":8192},"x-writ-text":true,"description":"Further headers. Credentials are the connection's; yours are dropped."},
"body":{"type":"string","maxLength":1048576,"x-writ-text":true,"description":"Body of POST, PUT, PATCH or DELETE, as text. Without a Content-Type of yours, JSON is sent as application/json and the rest as text/plain."}}}`)

// Tools makes the family.
func Tools(client *Client) ([]*tool.Tool, error) {
	t, err := tool.New(tool.Definition{
		Name: Name, Title: "Call an external API",
		Description: "Send one HTTP request over a connection that the operator set up: its address and credentials are the connection's, you give method, path, headers and body. " +
			"Answers with status, headers and body, at most 1 MiB; redirects are not followed.",
		Category: action.ExternalData, Action: action.ExternalData.Default(), Class: writ.ClassReadOnly, Tier: "medium",
		Schema: schema,
		Examples: []tool.Example{
			{What: "Read something", Args: json.RawMessage(`{"connection":"github","path":"/repos/acme/app/issues?state=open"}`)},
			{What: "Write something; a person is asked", Args: json.RawMessage(`{"connection":"github","method":"POST","path":"/repos/acme/app/issues","body":"{\"title\":\"It breaks\"}"}`)},
		},
		Failures: []string{
			"There is no such connection, or it is not for this agent: the error names those that are.",
			"The connection does not take the method or the path: the error says which it takes.",
			"The rate limit is reached: the error has retry_after, in seconds.",
			"The other side answers 4xx or 5xx: the result is an error with its answer.",
		},
		Hints: tool.Hints{OpenWorld: new(true)}, Untrusted: true, Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.Builtin},
	}, func(ctx context.Context, w writ.Writ) (writ.Result, error) { return client.run(ctx, w) })
	if err != nil {
		return nil, err
	}
	return []*tool.Tool{t}, nil
}

// within bounds a request, with everything that it needs first.
const within = 60 * time.Second
