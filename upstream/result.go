package upstream

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
)

// mostResult is how many bytes a tool's result may have, unless the operator says
// otherwise.
const mostResult = 4 << 20

// ResultOptions are what a result is held to.
type ResultOptions struct {
	MaxBytes int             // default 4 MiB
	Output   json.RawMessage // the tool's output schema; nil: none
}

// Members of a result's metadata.
const (
	MetaBlocks     = "content_blocks"     // json.RawMessage: the content array as it came
	MetaStructured = "structured_content" // json.RawMessage
	MetaResult     = "meta"               // json.RawMessage: the result's _meta
	MetaMedia      = "media"              // []Media: what the text only mentions
)

// Media is an image, a sound or a file of a result, as base64.
type Media struct {
	Kind string `json:"kind"` // image, audio, resource
	Type string `json:"mime_type"`
	URI  string `json:"uri,omitempty"`
	Data string `json:"data"`
}

// ResultType is what a server's answer is: "complete", "input_required", "task", or
// another that a later version brings.
func ResultType(raw json.RawMessage) string {
	return cmp.Or(text(field(raw, "resultType")), "complete")
}

// Result makes a tool's result of the bytes of a CallToolResult. For callers that
// take text alone, blocks are joined by line breaks and what is no text is mentioned;
// the blocks themselves go along unchanged. An answer that is not the end of the call
// is an error: whoever relays those asks ResultType first.
func Result(raw json.RawMessage, o ResultOptions) (writ.Result, error) {
	var check outputChecker
	if o.Output != nil {
		var err error
		if check, err = outputCheck(o.Output); err != nil {
			return writ.Result{}, writ.Fail(writ.Internal, "the tool's output schema does not compile", err)
		}
	}
	return resultOf(raw, cmp.Or(o.MaxBytes, mostResult), check)
}

// Result is the same for a tool of an Offer, whose output schema was compiled once. A
// bound of zero is the default.
func (t Tool) Result(raw json.RawMessage, maxBytes int) (writ.Result, error) {
	return resultOf(raw, cmp.Or(maxBytes, mostResult), t.check)
}

func resultOf(raw json.RawMessage, most int, check outputChecker) (writ.Result, error) {
	if len(raw) > most {
		return writ.Result{}, writ.Fail(writ.TooLarge, fmt.Sprintf("the tool ran, and its result has %d bytes where %d are taken; ask for less at a time", len(raw), most), nil)
	}
	var content, structured, meta, isError json.RawMessage
	kind := "complete"
	loose, err := members(raw, func(key, value []byte) {
		switch string(key) {
		case "content":
			content = value
		case "structuredContent":
			structured = value
		case "_meta":
			meta = value
		case "isError":
			isError = value
		case "resultType":
			kind = text(value)
		}
	})
	if err == nil {
		err = loose
	}
	if err == nil && isError != nil && string(isError) != "true" && string(isError) != "false" {
		err = errors.New("isError is neither true nor false")
	}
	if err != nil {
		return writ.Result{}, malformed(err)
	}
	if kind != "complete" {
		return writ.Result{}, writ.Fail(writ.Invalid, fmt.Sprintf("the server did not end the call: it answered with %s, which is not relayed here", short(kind)), nil)
	}
	r := writ.Result{IsError: string(isError) == "true", Metadata: map[string]any{}}
	if content == nil || string(content) == "null" {
		content = json.RawMessage("[]")
	}
	blocks, err := elements(content)
	if err != nil {
		return writ.Result{}, malformed(fmt.Errorf("content: %w", err))
	}
	var media []Media
	var joined strings.Builder
	for i, b := range blocks {
		if i > 0 {
			joined.WriteByte('\n')
		}
		// Two bytes of a block can be thirty of its mention.
		if joined.WriteString(block(b, &media)); joined.Len() > most {
			return writ.Result{}, writ.Fail(writ.TooLarge, fmt.Sprintf("the tool ran, and the text of its %d blocks has more than the %d bytes that are taken; ask for less at a time", len(blocks), most), nil)
		}
	}
	r.Content = joined.String()
	r.Metadata[MetaBlocks] = content
	if media != nil {
		r.Metadata[MetaMedia] = media
	}
	if meta != nil {
		r.Metadata[MetaResult] = meta
	}
	if structured != nil && string(structured) != "null" {
		r.Metadata[MetaStructured] = structured
	}
	if check != nil && !r.IsError {
		return fitting(r, check, structured), nil
	}
	return r, nil
}

// malformed is for an answer that came: the tool ran.
func malformed(err error) error {
	return writ.Fail(writ.Unknown, "the server answered with something that is no result of a tool; whether it did anything is not known", err)
}

// fitting holds a result to the schema that its tool promised. One that does not fit
// is an error that the model sees, and its blocks are not passed on as if it did.
func fitting(r writ.Result, check outputChecker, structured json.RawMessage) writ.Result {
	why := "it has no structured content"
	if structured != nil {
		err := check(structured)
		if err == nil {
			return r
		}
		_, why = writ.Public(err)
	}
	r.IsError = true
	r.Content = "[the tool ran, and its result does not fit its own output schema: " + why + "]\n" + r.Content
	delete(r.Metadata, MetaBlocks)
	delete(r.Metadata, MetaStructured)
	return r
}

// block is one block as text.
func block(raw json.RawMessage, media *[]Media) string {
	m := map[string]json.RawMessage{}
	if _, err := members(raw, func(key, value []byte) { m[string(key)] = value }); err != nil {
		return "[content that is no object]"
	}
	switch kind := text(m["type"]); kind {
	case "text":
		return text(m["text"])
	case "image", "audio":
		return mention(Media{Kind: kind, Type: text(m["mimeType"]), Data: text(m["data"])}, media)
	case "resource_link":
		return "[resource " + short(cmp.Or(text(m["title"]), text(m["name"]))) + ": " + short(text(m["uri"])) + typed(text(m["mimeType"])) + "]"
	case "resource":
		return embedded(m["resource"], media)
	default:
		return "[content of type " + short(cmp.Or(kind, "(none)")) + "]"
	}
}

func embedded(raw json.RawMessage, media *[]Media) string {
	m := map[string]json.RawMessage{}
	if _, err := members(raw, func(key, value []byte) { m[string(key)] = value }); err != nil {
		return "[resource that is no object]"
	}
	uri, kind := text(m["uri"]), text(m["mimeType"])
	if m["text"] != nil {
		return "[resource " + short(uri) + typed(kind) + "]\n" + text(m["text"])
	}
	return mention(Media{Kind: "resource", Type: kind, URI: uri, Data: text(m["blob"])}, media)
}

func typed(mime string) string {
	if mime == "" {
		return ""
	}
	return ", " + short(mime)
}

// mention keeps what is no text beside the text, and says that it is there.
func mention(m Media, media *[]Media) string {
	*media = append(*media, m)
	size := "not base64"
	if n := base64.StdEncoding.DecodedLen(len(m.Data)); len(m.Data)%4 == 0 {
		size = fmt.Sprintf("%d bytes", n-strings.Count(m.Data[max(0, len(m.Data)-2):], "="))
	}
	at := ""
	if m.URI != "" {
		at = " " + short(m.URI)
	}
	return "[" + m.Kind + at + typed(m.Type) + ", " + size + "]"
}
