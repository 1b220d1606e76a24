// A small MCP server for tests, which does what it is told: it looks at files, dials,
// dies, says nothing, and offers whatever tools are in the file that it is given.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	} `json:"params"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		switch r.Method {
		case "initialize":
			answer(r, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}`)
		case "tools/list":
			tools, err := os.ReadFile(os.Args[1])
			if err != nil {
				tools = []byte("[]")
			}
			answer(r, `{"tools":`+strings.ReplaceAll(string(tools), "\n", " ")+`}`)
		case "tools/call":
			call(r)
		case "ping":
			answer(r, `{}`)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", r.ID)
		}
	}
}

func call(r request) {
	a := r.Params.Arguments
	switch r.Params.Name {
	case "peek":
		b, err := os.ReadFile(a["path"])
		say(r, string(b), err)
	case "put":
		say(r, "put", os.WriteFile(a["path"], []byte("x"), 0o644))
	case "dial":
		c, err := net.DialTimeout("tcp", a["to"], time.Second)
		if err == nil {
			c.Close()
		}
		say(r, "connected", err)
	case "environment":
		say(r, strings.Join(os.Environ(), "\n"), nil)
	case "poke":
		say(r, "poked", nil)
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case "die":
		os.Exit(3)
	case "hang":
	default:
		say(r, "hello from "+r.Params.Name, nil)
	}
}

func say(r request, text string, err error) {
	if err != nil {
		text = "error: " + err.Error()
	}
	b, _ := json.Marshal(text)
	answer(r, fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"isError":%v}`, b, err != nil))
}

func answer(r request, result string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", r.ID, result)
}
