package egress_test

import (
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/lab"
	"github.com/writ-run/writ/host"
)

// What runs in this process is held as what runs in a box is.
func TestRequest(t *testing.T) {
	if !lab.Run(t) {
		return
	}
	a := lab.NewAuthority(t)
	lab.Names(t, map[string][][]string{
		"good.test": {{lab.Public}}, "other.test": {{lab.Other}}, "inside.test": {{lab.Private}}, "meta.test": {{lab.Metadata}}, "mixed.test": {{lab.Public, lab.Private}},
		"rebinds.test": {{lab.Public}, {lab.Private}},
	})
	for _, at := range []string{lab.Public, lab.Other, lab.Private, lab.Metadata} {
		lab.Web(t, at+":443", a)
		lab.Web(t, at+":80", nil)
	}
	pem, err := os.ReadFile(a.File)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	broker := egress.New(egress.Options{Roots: roots})

	for _, row := range []struct {
		name, method, url, body string
		class                   writ.Class
		change                  func(*http.Request)
		want                    egress.Verdict
	}{
		{name: "https", method: "GET", url: "https://good.test/", class: writ.ClassReadOnly, want: egress.Allowed},
		{name: "http", method: "HEAD", url: "http://good.test:80/", class: writ.ClassReadOnly, want: egress.Allowed},
		{name: "write", method: "POST", url: "https://good.test/", body: "x", class: writ.ClassWrite, want: egress.Allowed},
		{name: "write under read_only", method: "POST", url: "https://good.test/", class: writ.ClassReadOnly, want: egress.MethodRefused},
		{name: "a body under read_only", method: "GET", url: "https://good.test/", body: "x", class: writ.ClassReadOnly, want: egress.MethodRefused},
		{name: "override under read_only", method: "GET", url: "https://good.test/", class: writ.ClassReadOnly, want: egress.MethodRefused,
			change: func(r *http.Request) { r.Header.Set("X-HTTP-Method-Override", "POST") }},
		{name: "another host", method: "GET", url: "https://other.test/", class: writ.ClassWrite, want: egress.HostNotAllowed},
		{name: "another port", method: "GET", url: "https://good.test:8443/", class: writ.ClassWrite, want: egress.HostNotAllowed},
		{name: "another Host", method: "GET", url: "https://good.test/", class: writ.ClassWrite, want: egress.Malformed,
			change: func(r *http.Request) { r.Host = "other.test" }},
		{name: "private", method: "GET", url: "https://inside.test/", class: writ.ClassWrite, want: egress.AddressNotOpen},
		{name: "metadata", method: "GET", url: "http://meta.test:80/", class: writ.ClassWrite, want: egress.AddressNotOpen},
		{name: "metadata by address", method: "GET", url: "http://" + lab.Metadata + ":80/", class: writ.ClassWrite, want: egress.AddressNotOpen},
		{name: "one of two private", method: "GET", url: "https://mixed.test/", class: writ.ClassWrite, want: egress.AddressNotOpen},
		{name: "by an address nobody named", method: "GET", url: "https://" + lab.Public + "/", class: writ.ClassWrite, want: egress.HostNotAllowed},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := &events{}
			pass := broker.Open(egress.Run{Call: "c", Class: row.class, Rules: patterns(t, "good.test", "good.test:80", "inside.test", "meta.test:80", "mixed.test", lab.Metadata+":80"), Log: log.add})
			req, err := http.NewRequest(row.method, row.url, strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			if row.change != nil {
				row.change(req)
			}
			resp, err := pass.RoundTrip(req)
			got := egress.Allowed
			if refusal := (*egress.Refusal)(nil); errors.As(err, &refusal) {
				got = refusal.Verdict
			} else if err != nil {
				t.Fatal(err)
			} else {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			pass.Close()
			if got != row.want {
				t.Errorf("%s, want %s (%v)", got, row.want, err)
			}
			if !log.has(row.want) {
				t.Errorf("the log lacks it: %+v", log.all)
			}
			if row.want == egress.Allowed && !log.carried() {
				t.Errorf("the log says nothing of what went through: %+v", log.all)
			}
		})
	}
}

func patterns(t *testing.T, texts ...string) (out egress.Rules) {
	for _, text := range texts {
		p, err := host.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, egress.Rule{Host: p, At: text})
	}
	return out
}

type events struct {
	mu  sync.Mutex
	all []egress.Event
}

func (e *events) add(ev egress.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) has(v egress.Verdict) bool {
	for _, ev := range e.all {
		if ev.Verdict == v {
			return true
		}
	}
	return false
}

func (e *events) carried() bool {
	for _, ev := range e.all {
		if ev.Kind == "connect" && ev.Sent > 0 && ev.Got > 0 {
			return true
		}
	}
	return false
}
