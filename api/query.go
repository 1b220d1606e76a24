package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-run/writ"
)

// readQuery takes the parameters that the route declares, each once, and no others.
func (x *exchange) readQuery() error {
	x.query = map[string]string{}
	given, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return writ.Fail(writ.Invalid, "the query does not read; escape it as a URL demands", err)
	}
	for name, values := range given {
		i := slices.IndexFunc(x.route.query, func(p param) bool { return p.name == name })
		if i < 0 {
			return writ.Fail(writ.Invalid, fmt.Sprintf("unknown query parameter %s; %s", quoted(name), takes(x.route.query)), nil)
		}
		if len(values) != 1 {
			return writ.Fail(writ.Invalid, name+" is given twice in the query; give it once", nil)
		}
		if err := x.route.query[i].check(values[0]); err != nil {
			return err
		}
		x.query[name] = values[0]
	}
	return nil
}

func takes(params []param) string {
	if len(params) == 0 {
		return "this path takes none"
	}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return "this path takes " + strings.Join(names, ", ")
}

func (p *param) check(v string) error {
	if p.number {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < p.least || n > p.most || strconv.FormatInt(n, 10) != v {
			return writ.Fail(writ.Invalid, fmt.Sprintf("%s is a whole number from %d to %d", p.name, p.least, p.most), nil)
		}
		return nil
	}
	if len(p.among) > 0 && !slices.Contains(p.among, v) {
		return writ.Fail(writ.Invalid, fmt.Sprintf("%s: %s is none of %s", p.name, quoted(v), strings.Join(p.among, ", ")), nil)
	}
	return nil
}

// number is a parameter's value, or what stands for it when it is left out.
func (x *exchange) number(name string, missing int64) int64 {
	n, err := strconv.ParseInt(x.query[name], 10, 64)
	if err != nil { // it was checked, so it is not there
		return missing
	}
	return n
}

// wait is how long the caller waits for a person.
func (x *exchange) wait() time.Duration { return time.Duration(x.number("wait", 0)) * time.Second }

// quoted is what a caller wrote, fit for one line of a message.
func quoted(s string) string {
	if len(s) > 64 {
		return strconv.QuoteToASCII(strings.ToValidUTF8(s[:64], "")) + "…"
	}
	return strconv.QuoteToASCII(s)
}
