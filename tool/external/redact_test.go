package external

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const credential = `tok/3n+"<v&l>=\x y%41`

func TestRedact(t *testing.T) {
	r := newRedactor(credential)
	quoted, _ := json.Marshal(credential)
	plain, err := json.Marshal(map[string]string{"k": credential})
	if err != nil {
		t.Fatal(err)
	}
	every := func(format string) string {
		var b strings.Builder
		for i := range len(credential) {
			fmt.Fprintf(&b, format, credential[i])
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"as it is":               credential,
		"in capitals":            strings.ToUpper(credential),
		"base64":                 base64.StdEncoding.EncodeToString([]byte(credential)),
		"base64 after one":       base64.StdEncoding.EncodeToString([]byte("u:" + credential)),
		"base64 after two":       base64.StdEncoding.EncodeToString([]byte("user:" + credential + "; more")),
		"base64 for URLs":        base64.RawURLEncoding.EncodeToString([]byte("Bearer " + credential)),
		"base64 in JSON":         strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(credential)), "/", `\/`),
		"base64 in a URL":        url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(credential))),
		"base64 in lines":        base64.StdEncoding.EncodeToString([]byte(credential))[:7] + "\r\n" + base64.StdEncoding.EncodeToString([]byte(credential))[7:],
		"base64 in JSON's lines": base64.StdEncoding.EncodeToString([]byte(credential))[:7] + `\n` + base64.StdEncoding.EncodeToString([]byte(credential))[7:],
		"hexadecimal, apart":     fmt.Sprintf("% x", credential),
		"folded":                 credential[:9] + "\r\n  " + credential[9:],
		"hexadecimal":            hex.EncodeToString([]byte(credential)),
		"hexadecimal, capitals":  strings.ToUpper(hex.EncodeToString([]byte(credential))),
		"in a query":             url.QueryEscape(credential),
		"in a path":              url.PathEscape(credential),
		"encoded twice":          url.QueryEscape(url.QueryEscape(credential)),
		"every byte encoded":     every("%%%02x"),
		"in JSON":                string(quoted),
		"in an object":           string(plain),
		"every byte escaped":     every(`\u%04X`),
		"in HTML":                html.EscapeString(credential),
		"every byte an entity":   every("&#x%x;"),
		"every byte a number":    every("&#%d;"),
	} {
		got := r.line("before " + text + " after")
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "[secret]") {
			t.Errorf("%s: %q", name, got)
		}
		if left := strings.NewReplacer("before ", "", " after", "", "[secret]", "").Replace(got); len(left) > 20 {
			t.Errorf("%s leaves %q", name, left)
		}
	}
	for _, text := range []string{"", "tok", "nothing of it", "100%", `\`, "&", "%2", "&#x;"} {
		if got := r.line(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := (redactor{}).line("anything"); got != "anything" {
		t.Errorf("without credentials: %q", got)
	}
}

// What servers quote is known however they quote it, also where a part of it is.
func TestRedactQuoted(t *testing.T) {
	const token = "cAnArY-7f3a/9b+Q=tok3n&value"
	r := newRedactor(token)
	inJSON := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	each := func(of, with string) string {
		return strings.NewReplacer("-", of+"-", "/", of+"/", "+", of+"+", "=", of+"=", "&", of+"&").Replace(with)
	}
	for name, text := range map[string]string{
		"JSON in JSON":          inJSON(inJSON(token)),
		"three times":           inJSON(inJSON(inJSON(token))),
		"quoted-printable":      strings.ReplaceAll(token, "=", "=3D"),
		"and in lines":          strings.ReplaceAll(token[:20], "=", "=3D") + "=\r\n" + token[20:],
		"in an expression":      regexp.QuoteMeta(token),
		"in Markdown":           each(`\`, token),
		"twice":                 each(`\\`, token),
		"bytes":                 fmt.Sprint([]byte(token)),
		"bytes of a program":    strings.ReplaceAll(fmt.Sprint([]byte(token)), " ", ", "),
		"octal":                 strings.NewReplacer("=", `\075`, "&", `\46`).Replace(token),
		"old JavaScript":        strings.NewReplacer("=", "%u003d", "&", "%u0026").Replace(token),
		"new JavaScript":        strings.NewReplacer("=", `\u{3d}`, "&", `\u{0026}`).Replace(token),
		"named in HTML":         strings.NewReplacer("=", "&equals;", "&", "&amp;", "+", "&plus;", "/", "&sol;").Replace(token),
		"numbers without end":   strings.NewReplacer("/", "&#47", "=", "&#x3D").Replace(token),
		"a quotation of mail":   token[:9] + "\n> " + token[9:],
		"lines of HTML":         token[:9] + "<br>\n" + token[9:],
		"a text of a program":   token[:9] + `" + "` + token[9:],
		"HTML in a URL":         url.QueryEscape(html.EscapeString(token)),
		"without its end":       token[:22],
		"without its beginning": token[6:],
	} {
		got := r.line("before " + text + " after")
		rest := strings.NewReplacer("before ", "", " after", "", "[secret]", "").Replace(got)
		if letters := strings.Map(func(c rune) rune {
			if c < 0x80 && letter(byte(c)) {
				return c
			}
			return -1
		}, rest); !strings.Contains(got, "[secret]") || len(letters) > 0 {
			t.Errorf("%s leaves %q of %q", name, got, text)
		}
	}
	for _, text := range []string{"canary value tok3n", "=3D\\u003d&amp;%41", "66 101 102"} {
		if got := r.line(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A credential across the end is none of it left, and what is cut is cut.
func TestRedactAtTheEnd(t *testing.T) {
	r := newRedactor("0123456789abcdef")
	text := strings.Repeat("x", 10) + "0123456789abcdef" + strings.Repeat("y", 20)
	for limit := range 40 {
		got := r.clean(text, limit)
		if strings.ContainsAny(got, "0123456789") {
			t.Errorf("%d: %q", limit, got)
		}
		if limit < 10 && len(got) != limit {
			t.Errorf("%d: %q", limit, got)
		}
	}
	many := strings.Repeat("0123456789abcdef", 50)
	if got := r.clean(many, len(many)-8); strings.ReplaceAll(got, "[secret]", "") != "" {
		t.Errorf("%q", got)
	}
}

// Nothing about an answer tells how long the credential in it is.
func TestLengthIsNotTold(t *testing.T) {
	for name, of := range map[string]func(string) (string, http.Header){
		"text":       func(v string) (string, http.Header) { return "it is " + v, http.Header{} },
		"not text":   func(v string) (string, http.Header) { return "\x00" + v, http.Header{} },
		"compressed": func(v string) (string, http.Header) { return v, http.Header{"Content-Encoding": {"br"}} },
	} {
		said := func(v string) string {
			body, header := of(v)
			header.Set("Content-Length", strconv.Itoa(len(body)))
			res, err := answer(&http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(body))}, api, newRedactor(v), nil)
			if err != nil || !strings.Contains(res.Content, "HTTP 200 OK") {
				t.Fatal(res, err)
			}
			return fmt.Sprint(res)
		}
		if short, long := said("0123456789"), said("0123456789abcdef"); short != long {
			t.Errorf("%s: %s and %s", name, short, long)
		}
	}
}

// A server that knows the credential must not make looking for it take long.
func TestRedactIsQuick(t *testing.T) {
	value := strings.Repeat("%25", 300)
	began := time.Now()
	newRedactor(value, strings.Repeat("a", 2000)).clean(strings.Repeat("%25", maxBody/8), maxBody)
	newRedactor(strings.Repeat("ab", 1000)).clean(strings.Repeat("ab", maxBody/2), maxBody)
	newRedactor(strings.Repeat("a", 8000)+"b").clean(strings.Repeat("a", maxBody), maxBody)
	newRedactor(strings.Repeat("%", 8000)+"b").clean(strings.Repeat(`\\u0025`, maxBody/8), maxBody)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("secret-value", "a", 1)
	f.Add("%%%%%%%%", "%25", 0)
	f.Fuzz(func(t *testing.T, value, around string, shift int) {
		if unfit(value) != "" || len(value) > 100 {
			return
		}
		r := newRedactor(value)
		if got := r.line(around + value + around); strings.Contains(got, value) && !strings.Contains("[secret]"+around+"[secret]", value) {
			t.Errorf("%q in %q: %q", value, around, got)
		}
	})
}

// Of a value with several lines each is taken out, but for those that are found everywhere.
func TestRedactorOfLines(t *testing.T) {
	r := NewRedactor("-----BEGIN-----\r\nabcdefghijkl\nxyz\n", "another-value")
	const text = `{"a":"-----BEGIN-----\nabcdefghijkl\nxyz","b":"another-value"}`
	if got, want := r.Clean(text), `{"a":"[secret]\n[secret]\nxyz","b":"[secret]"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if (Redactor{}).Clean(text) != text || !r.Equal(NewRedactor("-----BEGIN-----\r\nabcdefghijkl\nxyz\n", "another-value")) || r.Equal(Redactor{}) {
		t.Error("not the same")
	}
}
