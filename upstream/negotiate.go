package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modernFrom is the first version in which every request stands alone.
const modernFrom = "2026-07-28"

// lastWithSessions is what is asked for when a server leaves the question for newer
// versions unanswered.
const lastWithSessions = "2025-11-25"

// probe is how long a server may take over that question. One that does not know it
// should refuse it; some say nothing.
const probe = 3 * time.Second

// negotiate agrees on a version with the server behind the transports that open
// makes: one for each try.
func (c *Conn) negotiate(ctx context.Context, open func() mcp.Transport) (err error) {
	defer func() { // the SDK reads what a hostile server sent
		if p := recover(); p != nil {
			err = fmt.Errorf("negotiating: %v", p)
		}
	}()
	caps := &mcp.ClientCapabilities{}
	if c.o.Sampling {
		//lint:ignore SA1019 older servers ask for it
		caps.Sampling = &mcp.SamplingCapabilities{}
	}
	if c.o.Elicitation {
		caps.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	}
	me := &mcp.Implementation{Name: "writ", Title: "writ", Version: c.o.Version}
	client := mcp.NewClient(me, &mcp.ClientOptions{Capabilities: caps, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})

	unanswered := c.o.Older
	if !c.o.Older {
		short, cancel := context.WithTimeout(ctx, probe)
		c.session, err = client.Connect(short, open(), nil)
		unanswered = err != nil && short.Err() != nil && ctx.Err() == nil
		cancel()
	}
	if unanswered && c.Err() == nil {
		c.session, err = client.Connect(ctx, open(), &mcp.ClientSessionOptions{ProtocolVersion: lastWithSessions})
	}
	if err != nil {
		c.session = nil
		if why := c.Err(); why != nil {
			err = why
		}
		return fmt.Errorf("negotiating: %w", err)
	}
	if c.about = c.session.InitializeResult(); c.about == nil {
		return fmt.Errorf("negotiating: the server said nothing about itself")
	}
	if c.about.Capabilities == nil {
		c.about.Capabilities = &mcp.ServerCapabilities{}
	}
	if c.about.ProtocolVersion < modernFrom {
		return nil
	}
	info, err := json.Marshal(me)
	if err != nil {
		return err
	}
	c.meta = []metaMember{
		{key: mcp.MetaKeyProtocolVersion, value: []byte(strconv.Quote(c.about.ProtocolVersion))},
		{key: mcp.MetaKeyClientInfo, value: info},
		{key: mcp.MetaKeyClientCapabilities, value: c.capabilities(), keep: true},
	}
	return nil
}

// modern reports whether every request stands alone.
func (c *Conn) modern() bool { return c.about != nil && c.about.ProtocolVersion >= modernFrom }

func (c *Conn) capabilities() []byte {
	m := map[string]any{}
	if c.o.Sampling {
		m["sampling"] = struct{}{}
	}
	if c.o.Elicitation {
		m["elicitation"] = map[string]any{"form": struct{}{}}
	}
	b, _ := json.Marshal(m) // of maps and strings alone
	return b
}

// has reports whether the server says that it has one of the lists.
func (c *Conn) has(list string) bool {
	caps := c.about.Capabilities
	switch list {
	case "tools":
		return caps.Tools != nil
	case "resources":
		return caps.Resources != nil
	}
	return list == "prompts" && caps.Prompts != nil
}

// tells is the parameters of subscriptions/listen for what the server says it tells
// of; nil when that is nothing.
func (c *Conn) tells() []byte {
	caps, want := c.about.Capabilities, map[string]bool{}
	if caps.Tools != nil && caps.Tools.ListChanged {
		want["toolsListChanged"] = true
	}
	if caps.Resources != nil && caps.Resources.ListChanged {
		want["resourcesListChanged"] = true
	}
	if caps.Prompts != nil && caps.Prompts.ListChanged {
		want["promptsListChanged"] = true
	}
	if len(want) == 0 {
		return nil
	}
	b, _ := json.Marshal(map[string]any{"notifications": want}) // of maps and booleans alone
	return b
}

// relisten keeps a stream of changes open: open returns when it ended, false when
// there is no point in trying again. Between two streams something may have changed.
func (c *Conn) relisten(open func() bool) {
	wait := time.Second
	for {
		began := time.Now()
		if again := open(); !again || c.life.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		timer := time.NewTimer(jittered(wait))
		select {
		case <-c.life.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = min(2*wait, time.Minute)
		for _, list := range []string{"tools", "resources", "prompts"} {
			c.o.Changed(list)
		}
	}
}
