package egress

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A piece is how much is handed over before it is counted again: more of what goes on
// without a pause. It is taken from what the run may have before it is used.
const (
	piece     = 1 << 18
	mostPiece = 1 << 21
)

// active is when something last went through a connection, either way.
type active struct{ at atomic.Int64 }

func (a *active) now() { a.at.Store(time.Now().UnixNano()) }

func (a *active) within(d time.Duration) bool { return time.Since(time.Unix(0, a.at.Load())) < d }

// copy hands over what comes from one side, until its end, a limit, or until neither side
// says anything. first is the same side with what was looked at of it already; nil: nothing
// was. Without it the kernel does the work.
func (p *Pass) copy(to io.Writer, from net.Conn, first *peeked, last *active) (sum int64) {
	idle, size := p.broker.o.Limits.Idle, int64(piece)
	for {
		var source io.Reader = from
		if first != nil && (first.late || first.first.Buffered() > 0) {
			source = first
		}
		may := p.take(size)
		if may == 0 {
			return sum
		}
		from.SetReadDeadline(time.Now().Add(idle))
		n, err := io.CopyN(to, source, may)
		p.giveBack(may - n)
		if sum += n; n > 0 {
			last.now()
		}
		if n == size {
			size = min(2*size, mostPiece)
		}
		if err != nil && !(isTimeout(err) && (n > 0 || last.within(2*idle))) {
			return sum
		}
	}
}

// finish tells one side that nothing more comes; where a limit ended it, it is cut.
func (p *Pass) finish(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok && !p.usedUp() {
		t.CloseWrite()
		return
	}
	c.Close()
}
