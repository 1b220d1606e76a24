package git

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
)

// A URL is where a repository is, parsed once: what it names is what is decided about,
// and git gets the parts put together again, never the text that was written. The zero
// URL names nothing.
type URL struct {
	ssh  bool
	user string // of ssh alone; may be empty
	at   host.Endpoint
	path string // as the other side is asked for it; of ssh without a slash from where a user begins there
}

// Bounds and characters. What is not among them means something to some shell, some
// parser of URLs or some server, and to each something else.
const (
	maxURL    = 2048
	pathChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~/+=,-"
	nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

const forms = "write https://host/path, ssh://user@host/path or user@host:path"

// ParseURL reads https://host[:port]/path, ssh://[user@]host[:port]/path and
// [user@]host:path. Its errors repeat nothing that may be a password (I7).
func ParseURL(s string) (URL, error) {
	switch {
	case s == "":
		return URL{}, fail("is empty; " + forms)
	case len(s) > maxURL:
		return URL{}, fail(fmt.Sprintf("is longer than %d bytes", maxURL))
	case s[0] == '-':
		return URL{}, fail("begins with a hyphen, which git would take for an option; " + forms)
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return parseAbsolute(strings.ToLower(scheme), rest)
	}
	return parseShort(s)
}

func parseAbsolute(scheme, rest string) (URL, error) {
	authority, path, slash := strings.Cut(rest, "/")
	switch scheme {
	case "https", "ssh":
	case "http":
		return URL{}, fail("is http, which anybody on the way reads and changes; write https")
	default:
		return URL{}, fail("is neither https nor ssh, and nothing else is fetched from; " + forms)
	}
	if !slash || path == "" {
		return URL{}, fail("names no repository after the host; " + forms)
	}
	u := URL{ssh: scheme == "ssh", path: "/" + path}
	user, address, credential := strings.Cut(authority, "@")
	switch {
	case !credential:
		address = authority
	case !u.ssh:
		return URL{}, fail("has user information before the host; remove everything up to the @: credentials are never in a call")
	default:
		u.user = user
	}
	if err := u.point(address); err != nil {
		return URL{}, err
	}
	err := u.check()
	return u, err
}

// parseShort reads user@host:path, which is ssh at its own port.
func parseShort(s string) (URL, error) {
	address, path, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(address, "/") || strings.HasPrefix(path, ":") {
		return URL{}, fail("is not that of a git server; " + forms)
	}
	u := URL{ssh: true, path: path}
	if user, name, ok := strings.Cut(address, "@"); ok {
		u.user, address = user, name
		if user == "" {
			return URL{}, fail("has no user before the @; " + forms)
		}
	}
	if strings.HasPrefix(address, "[") {
		return URL{}, fail("has brackets; write ssh://user@[address]/path")
	}
	if err := u.point(address); err != nil {
		return URL{}, err
	}
	err := u.check()
	return u, err
}

// point reads the host by the one grammar there is for hosts.
func (u *URL) point(address string) error {
	if strings.Contains(address, "@") {
		return fail("has more than one @ before the path; " + forms)
	}
	if port := address[strings.LastIndexByte(address, ']')+1:]; u.ssh && !strings.Contains(port, ":") {
		address += ":22"
	}
	var err error
	if u.at, err = host.ParseEndpoint(address); err != nil {
		return writ.Fail(writ.Invalid, "the URL's "+err.Error(), nil)
	}
	return nil
}

// check holds the rest against what can be said to a server.
func (u *URL) check() error {
	if u.ssh && strings.HasPrefix(u.path, "/~") { // as git asks for it
		u.path = u.path[1:]
	}
	if strings.Trim(u.user, nameChars) != "" || strings.HasPrefix(u.user, "-") {
		return fail("has a user that is no plain name, or a password; write the name alone: credentials are never in a call")
	}
	allowed := pathChars
	if !u.ssh {
		allowed += "%"
	}
	if strings.Trim(u.path, allowed) != "" {
		return fail("has a path with other characters than letters, digits and ._~/+=,-" + map[bool]string{false: " and %", true: ""}[u.ssh] + "; there is no query and no fragment")
	}
	if strings.HasPrefix(u.path, "-") || strings.Trim(u.path, "/") == "" {
		return fail("has a path that names no repository; " + forms)
	}
	for part := range strings.SplitSeq(u.path, "/") {
		if part == ".." || part == "." {
			return fail("has . or .. in its path; write the path without them")
		}
	}
	if _, err := host.ParseURL("https://h" + u.path); !u.ssh && err != nil {
		return fail("has a % without two hexadecimal digits after it")
	}
	return u.plain()
}

// plain refuses what is written with a % and need not be, dots and slashes above all: git
// reads it as what it stands for here and as it is there. No server has lines in its names.
func (u *URL) plain() error {
	for i, part := range strings.Split(u.path, "%") {
		if u.ssh || i == 0 {
			continue
		}
		code, err := hex.DecodeString(part[:2])
		if err != nil || strings.ContainsRune(pathChars, rune(code[0])) || code[0] < 0x20 || code[0] == 0x7f {
			return fail("has %" + part[:2] + " in its path; write letters, digits, dots and slashes as they are, and no control characters")
		}
	}
	return nil
}

// Endpoint is the host and port that it is at.
func (u URL) Endpoint() host.Endpoint { return u.at }

// SSH reports whether it is reached by ssh, and as whom and where there: an empty user is
// whatever the operator says.
func (u URL) SSH() (user, path string, ok bool) { return u.user, u.path, u.ssh }

// HTTPS reports whether it is reached by https, and where there.
func (u URL) HTTPS() (path string, ok bool) { return u.path, !u.ssh }

// String is the one form that git gets and a repository remembers.
func (u URL) String() string {
	at := u.at.String()
	if !u.ssh {
		return "https://" + strings.TrimSuffix(at, ":443") + u.path
	}
	at = strings.TrimSuffix(at, ":22")
	if u.user != "" {
		at = u.user + "@" + at
	}
	switch {
	case strings.HasPrefix(u.path, "/"):
		return "ssh://" + at + u.path
	case strings.HasPrefix(u.path, "~"):
		return "ssh://" + at + "/" + u.path
	}
	return at + ":" + u.path
}

// name is what a clone is called where nobody says: the last part of the path.
func (u URL) name() string {
	last := strings.TrimRight(u.path, "/")
	last = last[strings.LastIndexByte(last, '/')+1:]
	last = strings.TrimSuffix(last, ".git")
	if last == "" || last[0] == '-' || last[0] == '.' || strings.Trim(last, nameChars) != "" {
		return ""
	}
	return last
}

func fail(why string) error { return writ.Fail(writ.Invalid, "the URL "+why, nil) }
