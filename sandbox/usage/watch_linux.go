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
// was met: disk, cpu, or unmeasured where what is used cannot be known.
func (l Limits) Watch(over <-chan struct{}, count func() (Use, error), stop func(limit string)) {
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
		case err != nil:
			stop("unmeasured")
		case l.Written > 0 && used.Written > l.Written:
			stop("disk")
		case l.CPU > 0 && used.CPU > l.CPU:
			stop("cpu")
		default:
			l.Watch(over, count, stop)
		}
	})
}
