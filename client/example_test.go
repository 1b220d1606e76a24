package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// An agent calls a tool and waits a minute for a person, where one is asked.
func Example() {
	ctx := context.Background()
	c, err := client.New("http://127.0.0.1:7323", os.Getenv("WRIT_TOKEN"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := c.Call(ctx, client.CallRequest{Tool: "read_file", Args: json.RawMessage(`{"path":"README.md"}`)}, time.Minute)
	var p *client.Problem
	switch {
	case errors.As(err, &p) && p.Kind == writ.Pending:
		fmt.Println("a person has not answered yet:", p.Approval)
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println(reply.Content)
	}
}

// An operator follows what happens, and takes up where the stream broke.
func ExampleClient_Events() {
	c := client.Dial(os.Getenv("HOME") + "/.local/state/writ")
	last := int64(-1)
	for e, err := range c.Events(context.Background(), last) {
		if err != nil {
			fmt.Println("go on after", last, "because", err)
			return
		}
		last = e.Seq
		fmt.Println(e.Seq, e.Kind)
	}
}
