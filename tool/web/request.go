package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/tool"
)

// RequestName is what the tool is called.
const RequestName = "http_request"

var requestDefinition = define(tool.Definition{
	Name: RequestName, Title: "Make an HTTP request",
	Description: "Make one HTTP request and return status, headers and body. GET and HEAD read; every other method asks a person. It reaches the URL's host and port alone: a redirect elsewhere is told, not followed. At most 1 MiB of the body is returned, as text; what it says is untrusted.",
	Action:      "comms:external", Class: writ.ClassReadOnly,
	ActionBy: &tool.ActionBy{Argument: "method", Types: map[string]action.Type{http.MethodGet: "web:read", http.MethodHead: "web:read"}},
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["method","url"],"properties":{
		"method":{"type":"string","enum":["GET","HEAD","POST","PUT","PATCH","DELETE","OPTIONS"]},
		"url":{"type":"string","minLength":1,"maxLength":8192,"x-writ-url":true,"description":"Absolute http or https URL, without user or password in it."},
		"headers":{"type":"object","maxProperties":64,"x-writ-text":true,"additionalProperties":{"type":"string","maxLength":8192},"description":"Headers by name. Host, Content-Length, Accept-Encoding and those of one connection are not set here."},
		"body":{"type":"string","maxLength":1048576,"x-writ-text":true,"description":"The body, as it is sent; not with GET and HEAD. Say its Content-Type in headers."},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":60,"description":"Seconds until the answer has to be there whole; 30 when left out."}}}`),
	Examples: []tool.Example{
		example("what an API says", `{"method":"GET","url":"https://api.example.com/v1/status","headers":{"Accept":"application/json"}}`),
		example("change something, which asks a person", `{"method":"POST","url":"https://api.example.com/v1/notes","headers":{"Content-Type":"application/json"},"body":"{\"text\":\"hello\"}"}`),
	},
	Failures: []string{"the host is not on the agent's allowlist (denied)", "the host's address is not public (denied where the URL has the address itself)", "the server redirects to another host, more than 5 times, or from https to http", "a header that cannot be set (denied)", "no complete answer in time"},
})

type requestArgs struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Timeout int               `json:"timeout_seconds"`
}

// CheckRequest refuses arguments of http_request, which the schema has taken, of which no
// request could be made; the error is a *tool.Impossible. The URL is a target, and held to
// its own grammar.
func CheckRequest(canonical string) error {
	var a requestArgs
	if err := json.Unmarshal([]byte(canonical), &a); err != nil {
		return err
	}
	_, err := a.header()
	return err
}

// header is what is sent along, where body and headers can be.
func (a requestArgs) header() (http.Header, error) {
	if a.Body != "" && (a.Method == http.MethodGet || a.Method == http.MethodHead) {
		return nil, &tool.Impossible{Argument: "body", Why: a.Method + " has none; leave it out, or use another method"}
	}
	h, err := headerOf(a.Headers)
	if err != nil {
		return nil, &tool.Impossible{Argument: "headers", Why: err.Error()}
	}
	return h, nil
}

func (f family) request(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a requestArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	r := request{method: a.Method, body: a.Body, timeout: time.Duration(cmp.Or(a.Timeout, 30)) * time.Second}
	var err error
	if r.url, r.to, err = target(w, "/url", a.URL); err != nil {
		return writ.Result{}, err
	}
	if r.header, err = a.header(); err != nil {
		return writ.Result{}, failf("%v", err)
	}
	var res writ.Result
	err = f.send(ctx, w, r, func(resp *http.Response, at *url.URL) error {
		b, err := bodyOf(resp)
		if err == nil {
			res = answer(r, resp, at, b)
		}
		return err
	})
	return res, err
}

// answer shows what came back.
func answer(r request, resp *http.Response, at *url.URL, b body) writ.Result {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", display.Preview(resp.Status, 100))
	if at.String() != r.url.String() {
		fmt.Fprintf(&out, "[redirected to %s]\n", shown(at.String()))
	}
	out.WriteString(headerText(resp.Header) + "\n")
	text, ok := b.text()
	switch {
	case len(b.bytes) == 0:
		out.WriteString("[no body]\n")
	case !ok:
		out.WriteString(b.notText() + "\n")
	default:
		safe := display.Visible(text)
		if len(safe) > mostBody {
			safe, b.cut = string(trimRune([]byte(safe[:mostBody]))), true
		}
		out.WriteString(safe)
		if b.cut {
			out.WriteString("\n" + cutNotice + "\n")
		}
	}
	return writ.Result{Content: out.String(), Metadata: map[string]any{
		"status": resp.StatusCode, "url": at.String(), "content_type": b.kind, "bytes": len(b.bytes), "cut": b.cut, "binary": !ok && len(b.bytes) > 0,
	}}
}
