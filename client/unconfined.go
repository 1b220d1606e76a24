package client

import (
	"context"
	"net/url"
)

// UnconfinedRequest is a command that is about to run with nothing around it. Its
// arguments are a digest and sizes: what they say may be secret.
type UnconfinedRequest struct {
	User    string `json:"user" jsonschema:"who runs it, as the operating system names them"`
	UID     int    `json:"uid"`
	Program string `json:"program" jsonschema:"absolute path of the file that is executed"`
	Argv    string `json:"argv_sha256" jsonschema:"digest of the command and its arguments, each ended by a zero byte"`
	Args    int    `json:"args" jsonschema:"how many these are, the command included"`
	Bytes   int    `json:"args_bytes" jsonschema:"and how long together, zero bytes included"`
	Dir     string `json:"directory" jsonschema:"absolute path of where it runs"`
}

// Unconfined is a command as the ledger knows it.
type Unconfined struct {
	ID string `json:"id"`
}

// UnconfinedEnd is how such a command ended.
type UnconfinedEnd struct {
	ExitCode   int  `json:"exit_code" jsonschema:"0 to 255; 128 and the signal's number where one ended it"`
	Signal     int  `json:"signal,omitempty" jsonschema:"number of the signal that ended it"`
	NotStarted bool `json:"not_started,omitempty" jsonschema:"it could not be executed after all"`
}

// StartUnconfined writes a command down, before it starts.
func (c *Client) StartUnconfined(ctx context.Context, req UnconfinedRequest) (Unconfined, error) {
	var out Unconfined
	err := c.do(ctx, "POST", "/v1/unconfined", req, &out)
	return out, err
}

// EndUnconfined writes down how it ended.
func (c *Client) EndUnconfined(ctx context.Context, id string, end UnconfinedEnd) error {
	return c.do(ctx, "POST", "/v1/unconfined/"+url.PathEscape(id)+"/end", end, &Status{})
}
