package engine

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// hints are what is known of a server since a time that may be why it does not do, each
// with what to do about it; failed: why it is not connected, empty: it is.
func (e *Engine) hints(s *server, failed string, since time.Time) []string {
	var out []string
	if failed != "" && s.cfg.URL != "" && s.secret.refused.Load() {
		out = append(out, s.unproven())
	}
	switch row, ok := e.lastRefused(s, since); {
	case ok:
		out = append(out, s.opens(row))
	case failed != "" && s.cfg.URL == "" && !s.own && len(s.cfg.Hosts) == 0 && offline().MatchString(failed):
		out = append(out, fmt.Sprintf("its box has no network; where it needs a host: writ upstream set %s --host HOST", s.name))
	}
	return out
}

// unproven is for a server that answers 401.
func (s *server) unproven() string {
	if proof := s.at().Auth; proof != "" {
		return fmt.Sprintf("the server does not take the credentials (401): %s; set the value anew, or another: writ upstream set %s --bearer store:NAME", proof, s.name)
	}
	return fmt.Sprintf("the server wants credentials (401): keep them with 'writ secret set NAME', then: writ upstream set %s --bearer store:NAME, or --secret-header 'HEADER: store:NAME'", s.name)
}

// offline is what programs say that find no network.
var offline = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo|network is unreachable|name resolution|no such host|could not resolve|Failed to resolve`)
})

// lastRefused is the last that a server wanted to reach and was not let through to.
func (e *Engine) lastRefused(s *server, since time.Time) (store.Egress, bool) {
	who := "server " + s.name
	if s.cfg.URL != "" {
		who = "upstreams." + s.name
	}
	rows, err := e.store.EgressBefore(context.Background(), store.EgressOf{Agent: who, Refused: true}, 0, 1)
	if err != nil || len(rows) == 0 || rows[0].At < since.UTC().Format(ledger.TimeFormat) {
		return store.Egress{}, false
	}
	return rows[0], true
}

// opens is what lets a server through to what it was refused.
func (s *server) opens(r store.Egress) string {
	text := fmt.Sprintf("it was not let through to %s (%s)", clip(r.Host), r.Verdict)
	switch {
	case egress.Verdict(r.Verdict) == egress.HostNotAllowed && s.cfg.URL == "":
		return text + fmt.Sprintf("; where that is meant: writ upstream set %s --host %s", s.name, clip(r.Rule))
	case Unmet(r):
		return text + "; where that is meant, an operator writes " + clip(r.Rule)
	}
	return text + "; see: writ egress log --refused"
}
