package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"time"
)

// failed writes down that an attempt failed, and says how long to wait.
func (c *Courier) failed(ctx context.Context, why error) time.Duration {
	attempts := c.State().Attempts + 1
	w, what, now := c.at, "", c.out.Now()
	if w.Failure = why.Error(); w.Failing == "" {
		w.Failing, what = now.UTC().Format(time.RFC3339Nano), Failing
	}
	since, _ := time.Parse(time.RFC3339Nano, w.Failing) // which it wrote itself
	left := c.to.GiveUp - now.Sub(since)
	var answer *refusal
	errors.As(why, &answer)
	if left <= 0 || answer != nil && answer.gone {
		w.Stopped, what = c.stamp(), Stopped
	}
	if err := c.keep(ctx, w, what); err != nil {
		c.log.Error("how far a webhook is could not be kept", "webhook", c.to.Name, "err", err)
		c.at = w
	}
	if what != "" {
		c.log.Warn(what, "webhook", c.to.Name, "why", w.Failure)
	}
	wait := backoff(attempts)
	if answer != nil {
		wait = max(wait, answer.after)
	}
	if wait = min(wait, max(left, time.Second)); w.Stopped != "" {
		c.show(attempts, time.Time{})
		return 0
	}
	c.show(attempts, now.Add(wait))
	return wait
}

// again begins anew.
func (c *Courier) again(ctx context.Context, after int64) error {
	w := c.at
	w.Failing, w.Failure, w.Stopped = "", "", ""
	if after > w.Seq {
		w.Seq, w.Part = after, 0
	}
	if err := c.keep(ctx, w, Retried); err != nil {
		return err
	}
	c.page = nil
	c.show(0, time.Time{})
	return nil
}

const (
	soonest = 2 * time.Second
	longest = time.Hour
)

// backoff is how long to wait after so many failures: twice as long each time, and a part
// of that by chance, so that those who failed together do not come back together.
func backoff(failures int) time.Duration {
	most := longest
	if failures < 13 {
		most = min(soonest<<(failures-1), longest)
	}
	part, err := rand.Int(rand.Reader, big.NewInt(int64(most/2)))
	if err != nil {
		return most
	}
	return most/2 + time.Duration(part.Int64())
}
