package external

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ/secret"
)

// redactor takes credentials out of what a server answers. It knows a value as it is and
// as servers write it back: in base64 at any place of a longer text, in hexadecimal or as
// numbers, and each of these percent-encoded, escaped or quoted (see unescape), some of that
// several times over, in letters of any case, with anything between the letters that is
// neither letter nor digit; and of what is longer than a piece, each piece. It holds against
// echoes (debugging pages, errors that quote a request); a server that means to tell the
// agent a credential knows it, and can. How long it takes depends on the text alone.
type redactor struct {
	forms  []string        // the longest first
	whole  []string        // as they are, in small letters
	dense  []string        // and without space
	short  []string        // letters and digits of those that have no piece
	pieces map[string]bool // so many letters and digits of the others, from each on
}

// Redactor takes values out of texts; see redactor. The zero one takes out nothing.
type Redactor struct{ of redactor }

// NewRedactor is for values that are to be taken out. Of one with several lines it is each
// line; a text that is too short is found everywhere, and is not looked for.
func NewRedactor(values ...string) Redactor {
	var lines []string
	for _, v := range values {
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= shortest {
				lines = append(lines, line)
			}
		}
	}
	return Redactor{newRedactor(lines...)}
}

// Clean is the text without them.
func (r Redactor) Clean(text string) string {
	return r.of.line(text)
}

// Equal reports whether two take out the same.
func (r Redactor) Equal(o Redactor) bool { return slices.Equal(r.of.forms, o.of.forms) }

// newRedactor is for values, and for the texts that were made of them.
func newRedactor(values ...string) redactor {
	r := redactor{pieces: map[string]bool{}}
	add := func(s string) {
		if len(s) >= shortest && !slices.Contains(r.forms, s) {
			r.forms = append(r.forms, s)
			r.look(s)
			r.look(string(plainly(s).text))
		}
	}
	for _, v := range values {
		add(v)
		add(hex.EncodeToString([]byte(v)))
		for shift := range 3 {
			core := base64Core(v, shift)
			add(core)
			add(strings.NewReplacer("+", "-", "/", "_").Replace(core))
		}
		r.look(strings.Trim(fmt.Sprint([]byte(v)), "[]"))
	}
	slices.SortFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	return r
}

// shortest is how short a form may be: a shorter one is found in every text. A piece is so
// many letters and digits that no text has them by chance.
const (
	shortest = 6
	enough   = 8 // letters and digits, of a form that has no piece
	piece    = 12
)

// look has a form looked for.
func (r *redactor) look(form string) {
	all := original(form)
	add := func(to *[]string, s string, least int) {
		if len(s) >= least && !slices.Contains(*to, s) {
			*to = append(*to, s)
		}
	}
	add(&r.whole, string(all.only(anything).text), shortest)
	add(&r.dense, string(all.only(noSpace).text), shortest)
	bare := string(all.only(letter).text)
	if len(bare) < piece {
		add(&r.short, bare, enough)
		return
	}
	for at := range len(bare) - piece + 1 {
		r.pieces[bare[at:at+piece]] = true
	}
}

// base64Core is what base64 of any text has in it that contains v after a number of
// bytes that leaves shift when divided by three. The ends depend on what stands there.
func base64Core(v string, shift int) string {
	text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + v))
	text = text[[]int{0, 2, 3}[shift]:]
	text = strings.TrimRight(text, "=")
	if (shift+len(v))%3 != 0 && text != "" {
		text = text[:len(text)-1]
	}
	return text
}

// clean replaces every form that begins in the first limit bytes of text, and drops what
// comes after those. Text should go on beyond the limit, so that a form across it is
// known for one.
func (r redactor) clean(text string, limit int) string {
	limit = min(limit, len(text))
	var b strings.Builder
	at := 0
	for _, s := range r.found(text) {
		if s.from >= limit {
			break
		}
		b.WriteString(text[at:s.from])
		b.WriteString(secret.Shown)
		at = s.to
	}
	if at < limit {
		b.WriteString(text[at:limit])
	}
	return b.String()
}

// line is clean for a short text.
func (r redactor) line(text string) string { return r.clean(text, len(text)) }

// A span is a part of a text.
type span struct{ from, to int }

// found are the parts of a text that are forms, or pieces of them, in their order and apart.
func (r redactor) found(text string) []span {
	if len(r.forms) == 0 {
		return nil
	}
	var all []span
	for s, more, n := original(text), true, 0; more && n <= rounds; n++ {
		all = r.in(all, s)
		s, more = s.unescaped()
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// in adds what is found in one reading of a text.
func (r redactor) in(all []span, s reading) []span {
	for _, look := range []struct {
		s     reading
		forms []string
	}{{s.only(anything), r.whole}, {s.only(noSpace), r.dense}} {
		for _, form := range look.forms {
			all = look.s.find(all, form)
		}
	}
	bare := s.only(letter)
	for _, form := range r.short {
		all = bare.find(all, form)
	}
	for end, last := piece, -1; end <= len(bare.text); end++ {
		if !r.pieces[string(bare.text[end-piece:end])] {
			continue
		}
		from, to := int(bare.from[end-piece]), int(bare.to[end-1])
		if last >= end-piece { // it goes on
			all[len(all)-1].to = to
		} else {
			all = append(all, span{from, to})
		}
		last = end
	}
	return all
}
