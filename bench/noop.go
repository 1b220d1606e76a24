package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

// part is what this program is when it was started as one of the parties of a
// measurement, in a process of its own.
func part(args []string) (bool, error) {
	switch {
	case len(args) == 2 && args[1] == "noop-http":
		return true, listen(http.HandlerFunc(noopHTTP))
	case len(args) == 2 && args[1] == "noop-stdio":
		return true, noopStdio(os.Stdin, os.Stdout)
	case len(args) == 3 && args[1] == "proxy":
		to, err := url.Parse(args[2])
		if err != nil {
			return true, err
		}
		return true, listen(httputil.NewSingleHostReverseProxy(to))
	}
	return egressParty(args)
}

// listen serves on a free port of the loopback and says which, until standard input ends.
func listen(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	go func() { io.Copy(io.Discard, os.Stdin); l.Close() }()
	_ = http.Serve(l, h) // it ends with the listener
	return nil
}

// doesNothing is an MCP server whose one tool does nothing: its answer to a message, or nil.
func doesNothing(raw []byte) []byte {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(raw, &m) != nil || m.ID == nil {
		return nil
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"noop","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"noop","description":"Does nothing.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"ok"}]}`
	case "server/discover":
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func noopHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	if out := doesNothing(raw); out != nil {
		w.Header().Set("Content-Type", "application/json")
		w.Write(out)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func noopStdio(in io.Reader, out io.Writer) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if b := doesNothing(s.Bytes()); b != nil {
			if _, err := out.Write(append(b, '\n')); err != nil {
				return err
			}
		}
	}
	return s.Err()
}
