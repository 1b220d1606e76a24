package usage

import "time"

// Limits of what is counted. Zero is no limit.
type Limits struct {
	Written int64
	CPU     time.Duration
}

// lookEvery is how often it is looked at.
const lookEvery = 250 * time.Millisecond

// Watch counts now and then until over is closed, or stop was called with the limit that
// was met: disk, cpu, or unmeasured where what is used could not be known twice in a row.
// Once may be a process that was about to end; and what it used then counts the next time.
func (l Limits) Watch(over <-chan struct{}, count func() (Use, error), stop func(limit string)) {
	l.watch(over, count, stop, false)
}

func (l Limits) watch(over <-chan struct{}, count func() (Use, error), stop func(limit string), missed bool) {
	if l == (Limits{}) {
		return
	}
	time.AfterFunc(lookEvery, func() {
		select {
		case <-over:
			return
		default:
		}
		used, err := count()
		switch {
		case err != nil && missed:
			stop("unmeasured")
		case err != nil:
			l.watch(over, count, stop, true)
		case l.Written > 0 && used.Written > l.Written:
			stop("disk")
		case l.CPU > 0 && used.CPU > l.CPU:
			stop("cpu")
		default:
			l.watch(over, count, stop, false)
		}
	})
}
