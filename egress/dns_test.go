package egress

import (
	"net"
	"testing"

	"github.com/miekg/dns"
	"github.com/writ-run/writ"
)

// Of an allowed name nothing but addresses is told; what else is asked is logged all the same.
func TestOtherQuestions(t *testing.T) {
	for _, c := range []struct {
		kind uint16
		log  string
	}{{dns.TypeTXT, "dns allowed"}, {dns.TypeANY, "dns allowed"}, {dns.TypeAAAA, ""}} {
		at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
		w := newWay(t, at, writ.ClassWrite, Limits{}, rule(t, at, writ.ClassWrite))
		q := new(dns.Msg)
		q.SetQuestion("good.test.", c.kind)
		m := w.relay.pass.answer(t.Context(), q)
		if log := w.logged(); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 || log != c.log {
			t.Errorf("%s: %v, log %q", dns.TypeToString[c.kind], m, log)
		}
	}
}
