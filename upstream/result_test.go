package upstream

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
)

func TestResult(t *testing.T) {
	raw := `{"content":[{"type":"text","text":"one\u00e9","x":1},{"type":"text","text":"two"},{"type":"image","mimeType":"image/png","data":"AAECAw=="},` +
		`{"type":"audio","mimeType":"audio/wav","data":"!"},{"type":"resource_link","uri":"file:///l","name":"link","mimeType":"text/plain"},` +
		`{"type":"resource","resource":{"uri":"file:///e","mimeType":"text/plain","text":"inside"}},{"type":"resource","resource":{"uri":"file:///b","blob":"AAEC"}},` +
		`{"type":"hologram\u001b"}],"structuredContent":{"n":12345678901234567890},"_meta":{"k":1},"isError":true,"later":[]}`
	got, err := Result(json.RawMessage(raw), ResultOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := writ.Result{
		Content: "oneé\ntwo\n[image, image/png, 4 bytes]\n[audio, audio/wav, not base64]\n[resource link: file:///l, text/plain]\n" +
			"[resource file:///e, text/plain]\ninside\n[resource file:///b, 3 bytes]\n[content of type hologram<U+001B>]",
		IsError: true,
		Metadata: map[string]any{
			MetaBlocks:     json.RawMessage(raw[len(`{"content":`):strings.Index(raw, `,"structuredContent"`)]),
			MetaStructured: json.RawMessage(`{"n":12345678901234567890}`),
			MetaResult:     json.RawMessage(`{"k":1}`),
			MetaMedia:      []Media{{"image", "image/png", "", "AAECAw=="}, {"audio", "audio/wav", "", "!"}, {"resource", "", "file:///b", "AAEC"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestResultIsHeldToItsSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	offered, err := parseTool(json.RawMessage(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":` + string(schema) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, raw, want string }{
		{"fits", `{"content":[{"type":"text","text":"t"}],"structuredContent":{"n":1}}`, "t"},
		{"an error need not fit", `{"content":[{"type":"text","text":"t"}],"isError":true}`, "t"},
		{"a string for a number", `{"content":[],"structuredContent":{"n":"1"}}`, "[the tool ran, and its result does not fit its own output schema: result: a string stands where the schema wants another type]\n"},
		{"something else", `{"content":[],"structuredContent":{"m":1}}`, "[the tool ran, and its result does not fit its own output schema: result: unknown argument \"m\"; it takes n]\n"},
		{"none", `{"content":[]}`, "[the tool ran, and its result does not fit its own output schema: it has no structured content]\n"},
	} {
		got, err := Result(json.RawMessage(c.raw), ResultOptions{Output: schema})
		if err != nil {
			t.Fatal(err)
		}
		if same, err := offered.Result(json.RawMessage(c.raw), 0); err != nil || cmp.Diff(got, same) != "" {
			t.Errorf("%s: %+v, %v", c.name, same, err)
		}
		if misfit := c.want != "t"; got.Content != c.want || misfit && (!got.IsError || got.Metadata[MetaBlocks] != nil || got.Metadata[MetaStructured] != nil) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestResultRefuses(t *testing.T) {
	for _, c := range []struct {
		raw  string
		kind writ.Kind
		msg  string
	}{
		{`{"content":[{"type":"text","text":"` + strings.Repeat("x", 4<<20) + `"}]}`, writ.TooLarge, "the tool ran, and its result has 4194343 bytes where 4194304 are taken; ask for less at a time"},
		{`{"content":[` + strings.Repeat("0,", 1<<20) + `0]}`, writ.TooLarge, "the tool ran, and the text of its 1048577 blocks has more than the 4194304 bytes that are taken; ask for less at a time"},
		{`{"resultType":"input_required","inputRequests":{}}`, writ.Invalid, "the server did not end the call: it answered with input_required, which is not relayed here"},
		{`{"resultType":"task","taskId":"1"}`, writ.Invalid, "the server did not end the call: it answered with task, which is not relayed here"},
		{`{"content":{}}`, writ.Unknown, "the server answered with something that is no result of a tool; whether it did anything is not known"},
		{`{"content":[],"isError":1}`, writ.Unknown, "the server answered with something that is no result of a tool; whether it did anything is not known"},
		{`[]`, writ.Unknown, "the server answered with something that is no result of a tool; whether it did anything is not known"},
	} {
		_, err := Result(json.RawMessage(c.raw), ResultOptions{})
		if kind, msg := writ.Public(err); kind != c.kind || msg != c.msg {
			t.Errorf("%.60s: %s, %s", c.raw, kind, msg)
		}
	}
	if r, err := Result(json.RawMessage(`{}`), ResultOptions{}); err != nil || r.Content != "" || r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCache(t *testing.T) {
	now := time.Unix(1000, 0)
	c := NewCache(func() time.Time { return now })
	key := CacheKey{"a", "s", writ.Digest{1}, "{}"}
	ok := json.RawMessage(`{"content":[]}`)
	c.Put(key, ok)
	for _, other := range []CacheKey{{"b", "s", writ.Digest{1}, "{}"}, {"a", "u", writ.Digest{1}, "{}"}, {"a", "s", writ.Digest{2}, "{}"}, {"a", "s", writ.Digest{1}, `{"a":1}`}} {
		if _, hit := c.Get(other); hit {
			t.Errorf("%+v was there", other)
		}
	}
	now = now.Add(59 * time.Second)
	if got, hit := c.Get(key); !hit || string(got) != string(ok) {
		t.Error("it is gone early")
	}
	now = now.Add(time.Second)
	if _, hit := c.Get(key); hit || c.order.Len() != 0 {
		t.Error("it stayed")
	}
	for _, bad := range []string{`{"content":[],"isError":true}`, `{"resultType":"input_required"}`, `{"resultType":"task"}`, `{"content":"` + strings.Repeat("x", 300<<10) + `"}`} {
		if c.Put(key, json.RawMessage(bad)); c.order.Len() != 0 {
			t.Errorf("%.40s was kept", bad)
		}
	}
	for n := range 300 {
		c.Put(CacheKey{Args: string(rune('0' + n))}, ok)
		c.Get(CacheKey{Args: "0"}) // used again and again
	}
	if _, hit := c.Get(CacheKey{Args: "0"}); !hit || c.order.Len() != 256 || len(c.byKey) != 256 {
		t.Errorf("%v, %d", hit, c.order.Len())
	}
	if _, hit := c.Get(CacheKey{Args: "1"}); hit {
		t.Error("the oldest stayed")
	}
}

func TestCacheable(t *testing.T) {
	reads, writes := Tool{Name: "r"}, Tool{Name: "w"}
	yes := true
	reads.Hints.ReadOnly = &yes
	for _, c := range []struct {
		t        Tool
		declared []string
		want     bool
	}{{reads, []string{"r"}, true}, {reads, nil, false}, {writes, []string{"w"}, false}} {
		if got := Cacheable(c.t, c.declared); got != c.want {
			t.Errorf("%+v, %v: %v", c.t, c.declared, got)
		}
	}
}
