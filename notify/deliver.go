package notify

import (
	"context"
	"time"

	"github.com/writ-run/writ/store"
)

// idle is to wait until there is more.
const idle = time.Duration(-1)

// step delivers the next message, and says how long to wait before the one after it.
func (c *Courier) step(ctx context.Context) time.Duration {
	if c.at.Stopped != "" {
		return 0
	}
	m, next, err := c.next(ctx)
	if err == nil && m == nil {
		return idle
	}
	if err == nil {
		err = c.to.send(ctx, *m)
		if ctx.Err() != nil { // it was cut off, which is nobody's failure
			return 0
		}
		if c.count(err == nil); err != nil {
			return c.failed(ctx, err)
		}
		err = c.delivered(ctx, next)
	}
	if err != nil && ctx.Err() == nil { // the store, which says so itself
		c.log.Error("how far a webhook is could not be read or kept", "webhook", c.to.Name, "err", err)
		return patience
	}
	return 0
}

// next is the next message that the endpoint wants, and how far it is after it.
func (c *Courier) next(ctx context.Context) (*Message, store.Webhook, error) {
	for {
		for len(c.page) > 0 {
			e := c.page[0]
			all := messages(e, c.to.Base)
			for n := c.at.Part; n < len(all); n++ {
				after := c.at
				if after.Part = n + 1; after.Part == len(all) {
					after.Seq, after.Part = e.Seq, 0
				}
				if c.to.wants(all[n]) {
					return &all[n], after, nil
				}
				c.at = after
			}
			c.at.Seq, c.at.Part, c.page = e.Seq, 0, c.page[1:]
		}
		if c.at.Seq-c.kept >= farAhead { // so that the next one does not begin so far back
			if err := c.keep(ctx, c.at, ""); err != nil {
				return nil, c.at, err
			}
		}
		var err error
		if c.page, err = c.out.After(ctx, c.at.Seq, 256); err != nil || len(c.page) == 0 {
			return nil, c.at, err
		}
	}
}

// farAhead is how many entries that say nothing to the endpoint are passed over before
// that is written down.
const farAhead = 1000

// delivered goes on behind a message.
func (c *Courier) delivered(ctx context.Context, next store.Webhook) error {
	what := ""
	if next.Failing != "" {
		what, next.Failing, next.Failure = Recovered, "", ""
	}
	next.Delivered = c.stamp()
	if err := c.keep(ctx, next, what); err != nil {
		return err
	}
	if len(c.page) > 0 && c.page[0].Seq <= next.Seq {
		c.page = c.page[1:]
	}
	c.show(0, time.Time{})
	return nil
}

func (c *Courier) stamp() string { return c.out.Now().UTC().Format(time.RFC3339Nano) }

// keep writes down how far it is, also when it is just being ended: what was delivered is
// not to be delivered again.
func (c *Courier) keep(ctx context.Context, w store.Webhook, what string) error {
	if err := c.out.Keep(context.WithoutCancel(ctx), w, what); err != nil {
		return err
	}
	c.at, c.kept = w, w.Seq
	return nil
}
