package gitssh

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A request is the first packet of git's plain protocol: what is wanted, and which version
// of the protocol is spoken afterwards.
type request struct{ service, path, protocol string }

// maxRequest is more than any: two names and a path.
const maxRequest = 4096

var errRequest = errors.New("not a request of git's")

// readRequest reads "git-upload-pack /path\0host=…\0\0version=2\0", and nothing after it.
func readRequest(from io.Reader) (request, error) {
	length := make([]byte, 4)
	if _, err := io.ReadFull(from, length); err != nil {
		return request{}, err
	}
	n, err := strconv.ParseUint(string(length), 16, 16)
	if err != nil || n <= 4 || n > maxRequest {
		return request{}, errRequest
	}
	text := make([]byte, n-4)
	if _, err := io.ReadFull(from, text); err != nil {
		return request{}, err
	}
	parts := strings.Split(string(text), "\x00")
	var r request
	var ok bool
	if r.service, r.path, ok = strings.Cut(parts[0], " "); !ok {
		return request{}, errRequest
	}
	for _, p := range parts[1:] {
		if p == "version=1" || p == "version=2" {
			r.protocol = p
		}
	}
	return r, nil
}

// complain says why there is nothing, as git's servers do.
func complain(to io.Writer, why string) {
	text := "ERR writ: " + why
	fmt.Fprintf(to, "%04x%s", len(text)+4, text)
}
