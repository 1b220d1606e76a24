package external

import (
	"bytes"
	"strconv"
	"strings"
)

// A reading is what a text says in one way of reading it: bytes, and of which part of the
// text each is.
type reading struct {
	text     []byte
	from, to []int32
}

// original is the text as it stands.
func original(text string) reading {
	s := blank(len(text))
	for i := range len(text) {
		s.add(text[i], i, i+1)
	}
	return s
}

func blank(room int) reading {
	return reading{make([]byte, 0, room), make([]int32, 0, room), make([]int32, 0, room)}
}

func (s *reading) add(c byte, from, to int) {
	s.text, s.from, s.to = append(s.text, c), append(s.from, int32(from)), append(s.to, int32(to))
}

func anything(byte) bool  { return true }
func noSpace(c byte) bool { return strings.IndexByte(" \t\r\n", c) < 0 }
func letter(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// only is the reading without some bytes, in small letters.
func (s reading) only(keep func(byte) bool) reading {
	out := blank(len(s.text))
	for i, c := range s.text {
		if keep(c) {
			out.add(fold(c), int(s.from[i]), int(s.to[i]))
		}
	}
	return out
}

// find adds the parts of the text that say a form.
func (s reading) find(all []span, form string) []span {
	for at := 0; ; {
		i := bytes.Index(s.text[at:], []byte(form))
		if i < 0 {
			return all
		}
		all = append(all, span{int(s.from[at+i]), int(s.to[at+i+len(form)-1])})
		at += i + len(form)
	}
}

// rounds is how often a text may be escaped: a quotation in a quotation in a URL.
const rounds = 4

// plainly is a text without any escapes.
func plainly(text string) reading {
	s := original(text)
	for more, n := true, 0; more && n < rounds; n++ {
		s, more = s.unescaped()
	}
	return s
}

// unescaped is the reading with what stands for another byte replaced by that, once; and
// whether there was any.
func (s reading) unescaped() (reading, bool) {
	if !bytes.ContainsAny(s.text, "%\\&=<") {
		return s, false
	}
	out, any := blank(len(s.text)), false
	for i := 0; i < len(s.text); {
		n, c, says := unescape(s.text[i:min(len(s.text), i+longestEscape)])
		if n == 0 {
			n, c, says = 1, s.text[i], true
		} else {
			any = true
		}
		if says {
			out.add(c, int(s.from[i]), int(s.to[i+n-1]))
		}
		i += n
	}
	return out, any
}

const longestEscape = 16

// unescape is how many bytes at the beginning of a text stand for another one, or for
// nothing: as in URLs, JSON, programs, regular expressions, Markdown, HTML and mail.
func unescape(text []byte) (n int, c byte, says bool) {
	switch text[0] {
	case '%':
		if n, c := number(text[1:], 2, 2, 16); n > 0 {
			return 1 + n, c, true
		}
		if len(text) > 1 && (text[1] == 'u' || text[1] == 'U') {
			n, c = number(text[2:], 4, 4, 16)
			return plus(2, n), c, true
		}
	case '\\':
		return backslash(text)
	case '&':
		n, c = entity(text)
		return n, c, true
	case '=':
		if n, c := number(text[1:], 2, 2, 16); n > 0 {
			return 1 + n, c, true
		}
		if bytes.HasPrefix(text, []byte("=\r\n")) {
			return 3, 0, false
		}
		if bytes.HasPrefix(text, []byte("=\n")) {
			return 2, 0, false
		}
	case '<':
		low := strings.ToLower(string(text))
		for _, tag := range []string{"<br>", "<br/>", "<br />", "<wbr>"} {
			if strings.HasPrefix(low, tag) {
				return len(tag), 0, false
			}
		}
	}
	return 0, 0, false
}

// backslash is unescape for what begins with one.
func backslash(text []byte) (n int, c byte, says bool) {
	if len(text) < 2 {
		return 0, 0, false
	}
	switch next := text[1]; {
	case next == 'u' && len(text) > 2 && text[2] == '{':
		n, c = number(text[3:], 1, 8, 16)
		if n == 0 || 3+n >= len(text) || text[3+n] != '}' {
			return 0, 0, false
		}
		return 3 + n + 1, c, true
	case next == 'u':
		n, c = number(text[2:], 4, 4, 16)
	case next == 'U':
		n, c = number(text[2:], 8, 8, 16)
	case next == 'x':
		n, c = number(text[2:], 2, 2, 16)
	case '0' <= next && next <= '7':
		n, c = number(text[1:], 2, 3, 8)
		return plus(1, n), c, true
	case strings.IndexByte("nrt", next) >= 0:
		return 2, ' ', true
	case !letter(next):
		return 2, next, true
	default:
		return 0, 0, false
	}
	return plus(2, n), c, true
}

// plus is how long an escape is of which so much comes before the rest; 0: there is no rest.
func plus(before, n int) int {
	if n == 0 {
		return 0
	}
	return before + n
}

// number is a byte that is written as a number with least to most digits, at the beginning of
// a text: with as many as it can be.
func number(text []byte, least, most, base int) (n int, c byte) {
	for n = min(most, len(text)); n >= least; n-- {
		if v, err := strconv.ParseUint(string(text[:n]), base, 8); err == nil {
			return n, byte(v)
		}
	}
	return 0, 0
}

// entities are those of HTML for what is on a keyboard.
var entities = map[string]byte{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "equals": '=', "plus": '+', "sol": '/', "bsol": '\\', "lowbar": '_', "hyphen": '-', "dash": '-',
	"num": '#', "percnt": '%', "commat": '@', "colon": ':', "semi": ';', "period": '.', "comma": ',', "excl": '!', "quest": '?', "lpar": '(', "rpar": ')',
	"lsqb": '[', "lbrack": '[', "rsqb": ']', "rbrack": ']', "lcub": '{', "lbrace": '{', "rcub": '}', "rbrace": '}', "verbar": '|', "vert": '|', "dollar": '$',
	"ast": '*', "midast": '*', "grave": '`', "hat": '^', "tilde": '~', "tab": ' ', "newline": ' ', "nbsp": ' ',
}

// entity is one of HTML, of which a number needs no end.
func entity(text []byte) (n int, c byte) {
	rest, ok := bytes.CutPrefix(text, []byte("&#"))
	if !ok {
		end := bytes.IndexByte(text, ';')
		if end < 2 {
			return 0, 0
		}
		if c, ok := entities[strings.ToLower(string(text[1:end]))]; ok {
			return end + 1, c
		}
		return 0, 0
	}
	lead, base := 2, 10
	if len(rest) > 0 && (rest[0] == 'x' || rest[0] == 'X') {
		rest, lead, base = rest[1:], 3, 16
	}
	digits := 0
	for digits < len(rest) && strings.IndexByte("0123456789abcdef"[:base], fold(rest[digits])) >= 0 {
		digits++
	}
	least, ended := 1, digits < len(rest) && rest[digits] == ';'
	if ended {
		least = max(digits, 1)
	}
	if n, c = number(rest[:digits], least, digits, base); n == 0 {
		return 0, 0
	}
	if ended {
		n++
	}
	return lead + n, c
}

func fold(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
