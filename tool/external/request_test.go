package external

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var api = Connection{
	Name: "api", Base: "https://api.example/v2", Host: "api.example:443", Methods: []string{"GET", "POST"}, Paths: []string{"/**"}, Rate: 60,
	Auth: Auth{Type: "api_key", Header: "X-Team_Key"},
}

// R10: whatever an agent writes as the path, the request is below the connection's own
// address, and every reader reads it alike.
func TestPaths(t *testing.T) {
	for path, want := range map[string]string{ // the address, or what the error says
		"/":                                "https://api.example/v2/",
		"/things":                          "https://api.example/v2/things",
		"/things/?q=a%20b&c=../x":          "https://api.example/v2/things/?q=a%20b&c=../x",
		"/a@evil.example":                  "https://api.example/v2/a@evil.example",
		"/@scope/name":                     "https://api.example/v2/@scope/name",
		"/a:80/b":                          "https://api.example/v2/a:80/b",
		"/a%20b":                           "https://api.example/v2/a%20b",
		"/...":                             "https://api.example/v2/...",
		"/.hidden":                         "https://api.example/v2/.hidden",
		"/100%25":                          "https://api.example/v2/100%25",
		"/a?":                              "https://api.example/v2/a?",
		"/a?u=//evil@x":                    "https://api.example/v2/a?u=//evil@x",
		"":                                 "begins with /",
		"things":                           "begins with /",
		"@evil.example/":                   "begins with /",
		".evil.example/":                   "begins with /",
		":80/":                             "begins with /",
		"https://evil.example/":            "begins with /",
		"?x":                               "begins with /",
		"//evil.example/":                  "empty segment",
		"/a//b":                            "empty segment",
		"/../admin":                        "dot segment",
		"/a/..":                            "dot segment",
		"/a/./b":                           "dot segment",
		"/%2e%2e/admin":                    "dot segment",
		"/.%2E/admin":                      "dot segment",
		"/%2e/admin":                       "dot segment",
		"/..;/admin":                       "dot segment",
		"/..;x=1/admin":                    "dot segment",
		"/%2e%2e%3b/admin":                 "dot segment",
		"/%20../admin":                     "dot segment",
		"/%252e%252e/admin":                "within an encoding",
		"/a%252fb":                         "within an encoding",
		"/a%255cb":                         "within an encoding",
		"/a%2fb":                           "encoded slash",
		"/..%2fadmin":                      "encoded slash",
		"/a%5cb":                           "encoded slash",
		"/a%00b":                           "encoded slash",
		"/a%0d%0aHost: evil":               "space",
		"/a%0d%0aX":                        "encoded slash",
		`/\evil.example`:                   "backslash",
		`\\evil.example`:                   "begins with /",
		"/a#b":                             "#",
		"/a?b#c":                           "#",
		"/a b":                             "space",
		"/a\r\nX: y":                       "space",
		"/a\x00":                           "space",
		"/ä":                               "not ASCII",
		"/a%":                              "hexadecimal",
		"/a%zz":                            "hexadecimal",
		"/a?x=%zz&%z=1":                    "hexadecimal",
		"/a?b=1\nc":                        "control character",
		"/a?access_token=x":                "credential",
		"/a?q=1&API-KEY=x":                 "credential",
		"/a?%61pikey=x":                    "credential",
		"/a?x=1;password=y":                "credential",
		"/" + strings.Repeat("a", maxPath): "more than",
	} {
		u, err := api.address(path)
		switch {
		case strings.HasPrefix(want, "https://"):
			if err != nil || u.String() != want || u.Host != "api.example" {
				t.Errorf("%.60q: %v, %v", path, u, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%.60q: %v, %v; want %q", path, u, err, want)
		}
	}
}

// What a connection is for is not what can be spelled to look like it.
func TestAllowedPaths(t *testing.T) {
	c := api
	c.Paths = []string{"/repos/acme/**", "/user", "/items/*"}
	for path, ok := range map[string]bool{
		"/repos/acme/app": true, "/repos/acme": true, "/user": true, "/user?x": true, "/items/1": true, "/%75ser": true,
		"/repos/acmex": false, "/repos": false, "/users": false, "/user/keys": false, "/items/1/2": false, "/USER": false, "/": false, "/repos%2facme": false,
	} {
		if _, err := c.address(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRequest(t *testing.T) {
	get := func(change func(*Args)) string {
		a := Args{Method: "GET", Path: "/x"}
		change(&a)
		req, dropped, err := api.Request(a)
		if err != nil {
			return err.Error()
		}
		var names []string
		for n, v := range req.Header {
			names = append(names, n+"="+strings.Join(v, ","))
		}
		slices.Sort(names)
		return req.Method + " " + req.Host + " " + strings.Join(names, " ") + " -" + strings.Join(dropped, ",")
	}
	headers := func(h ...string) func(*Args) {
		return func(a *Args) {
			a.Headers = map[string]string{}
			for i := 0; i < len(h); i += 2 {
				a.Headers[h[i]] = h[i+1]
			}
		}
	}
	const ours = "Accept-Encoding=identity User-Agent=writ"
	for name, c := range map[string]struct {
		change func(*Args)
		want   string
	}{
		"plain":            {func(*Args) {}, "GET api.example " + ours + " -"},
		"a method":         {func(a *Args) { a.Method = "DELETE" }, "method: connection api does not take DELETE; it takes GET, POST"},
		"in small letters": {func(a *Args) { a.Method = "get" }, "method: connection api does not take get; it takes GET, POST"},
		"JSON":             {func(a *Args) { a.Method, a.Body = "POST", `{"a":1}` }, "POST api.example Accept-Encoding=identity Content-Type=application/json User-Agent=writ -"},
		"text":             {func(a *Args) { a.Method, a.Body = "POST", `a=1` }, "POST api.example Accept-Encoding=identity Content-Type=text/plain; charset=utf-8 User-Agent=writ -"},
		"a body to read":   {func(a *Args) { a.Body = "x" }, "body: GET has none; put what you ask for into the path"},
		"its own":          {headers("X-Trace", "1", "accept", "text/html"), "GET api.example Accept-Encoding=identity Accept=text/html User-Agent=writ X-Trace=1 -"},
		"credentials":      {headers("Authorization", "x", "COOKIE", "x", "proxy-authorization", "x", "X-Api-Key", "x", "x_auth_token", "x", "x.access~token", "x"), "GET api.example " + ours + " -Authorization,Cookie,Proxy-Authorization,X-Api-Key,X.access~token,X_auth_token"},
		"the connection's": {headers("x-team-key", "x"), "GET api.example " + ours + " -X-Team-Key"},
		"host":             {headers("Host", "evil.example"), "headers: Host is not for agents to write; leave it out"},
		"forwarding":       {headers("X-Forwarded-Host", "evil.example"), "headers: X-Forwarded-Host is not for agents to write; leave it out"},
		"an override":      {headers("X_HTTP_Method_Override", "DELETE"), "headers: X_HTTP_Method_Override is not for agents to write; leave it out"},
		"hop by hop":       {headers("Connection", "x-trace"), "headers: Connection is not for agents to write; leave it out"},
		"framing":          {headers("transfer-encoding", "chunked"), "headers: transfer-encoding is not for agents to write; leave it out"},
		"compressed":       {headers("Accept-Encoding", "gzip"), "headers: Accept-Encoding is not for agents to write; leave it out"},
		"a line more":      {headers("X-A", "1\r\nHost: evil"), "headers: the value of X-A has a line break, a control character, what is not ASCII, or more than 8192 bytes"},
		"a bad name":       {headers("X A", "1"), "headers: a name has letters, digits and -, at most 128"},
		"an empty name":    {headers("", "1"), "headers: a name has letters, digits and -, at most 128"},
		"twice":            {headers("X-A", "1", "x-a", "2"), "headers: "},
	} {
		if got := get(c.change); got != c.want && !(name == "twice" && strings.Contains(got, "is there twice")) {
			t.Errorf("%s:\n %s\nwant\n %s", name, got, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	var r rates
	now := time.Unix(0, 0)
	for i := range 3 {
		if wait := r.take("a", 3, now.Add(time.Duration(i)*time.Second)); wait != 0 {
			t.Errorf("request %d waits %s", i, wait)
		}
	}
	if wait := r.take("a", 3, now.Add(10*time.Second)); wait != 50*time.Second {
		t.Errorf("the fourth waits %s", wait)
	}
	if wait := r.take("b", 3, now.Add(10*time.Second)); wait != 0 {
		t.Errorf("another connection waits %s", wait)
	}
	if wait := r.take("a", 1, now.Add(10*time.Second)); wait != 52*time.Second {
		t.Errorf("under a smaller limit it waits %s", wait)
	}
	if wait := r.take("a", 3, now.Add(60*time.Second)); wait != 0 {
		t.Errorf("a minute later it waits %s", wait)
	}
}
