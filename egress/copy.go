package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A piece is how much is handed over before it is counted again: more of what goes on
// without a pause. It is taken from what the run may have before it is used.
//
// Most connections say little, for which a buffer is cheaper than what the kernel needs to
// do the work alone; that begins with the first whole piece.
const (
	little    = 1 << 14
	piece     = 1 << 18
	mostPiece = 1 << 21
)

// active is when something last went through a connection, either way.
type active struct{ at atomic.Int64 }

func (a *active) now() { a.at.Store(time.Now().UnixNano()) }

func (a *active) within(d time.Duration) bool { return time.Since(time.Unix(0, a.at.Load())) < d }

// copy hands over what comes from one side, until its end, a limit, or until neither side
// says anything.
func (p *Pass) copy(to net.Conn, from *peeked, last *active) (sum int64) {
	idle, size := p.broker.o.Limits.Idle, int64(little)
	for {
		var source io.Reader = from.Conn
		if from.late || from.first != nil && from.first.Buffered() > 0 { // something of it was looked at, or is to be
			source = from
		}
		may := p.take(size)
		if may == 0 {
			return sum
		}
		from.SetReadDeadline(time.Now().Add(idle))
		n, err := p.broker.hand(to, source, may)
		p.giveBack(may - n)
		if sum += n; n > 0 {
			last.now()
		}
		switch {
		case err != nil && !(errors.Is(err, os.ErrDeadlineExceeded) && (n > 0 || last.within(2*idle))):
			return sum
		case size == little && sum >= piece:
			size = piece
		case size > little && n == size:
			size = min(2*size, mostPiece)
		}
	}
}

// hand hands over up to n bytes: what there is of a little, and all of a piece.
func (b *Broker) hand(to io.Writer, from io.Reader, n int64) (int64, error) {
	if n > little {
		return io.CopyN(to, from, n)
	}
	buffer, ok := b.buffers.Get().(*[little]byte)
	if !ok {
		buffer = new([little]byte)
	}
	defer b.buffers.Put(buffer)
	got, err := from.Read(buffer[:n])
	if got == 0 {
		return 0, err
	}
	wrote, failed := to.Write(buffer[:got])
	return int64(wrote), errors.Join(failed, err)
}

// finish tells one side that nothing more comes; where a limit ended it, it is cut.
func (p *Pass) finish(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok && !p.usedUp() {
		t.CloseWrite()
		return
	}
	c.Close()
}
