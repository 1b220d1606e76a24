package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// readBody reads and decodes what the route takes. What takes no body takes an
// empty object as well, from clients that always send one; a GET takes nothing.
func (x *exchange) readBody() error {
	raw, err := readAll(x.r)
	if err != nil {
		return err
	}
	if len(raw) > 0 || x.route.body != nil {
		if x.route.method == http.MethodGet {
			return writ.Fail(writ.Invalid, "a GET has no body; leave it out", nil)
		}
		if media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || media != "application/json" {
			return writ.Fail(writ.Invalid, "send the body as Content-Type: application/json", nil)
		}
	}
	if x.route.body == nil {
		if len(raw) > 0 {
			return wire.Decode(raw, &struct{}{})
		}
		return nil
	}
	into := reflect.New(reflect.TypeOf(x.route.body))
	if err := wire.Decode(raw, into.Interface()); err != nil {
		return err
	}
	x.body = into.Interface()
	return complete(raw, into.Elem())
}

// complete refuses a body without a field that it must have: left out, a false or
// a zero would decide something that nobody said.
func complete(raw []byte, v reflect.Value) error {
	var given map[string]json.RawMessage
	for _, f := range required(v.Type()) {
		if !v.FieldByIndex(f.Index).IsZero() {
			continue
		}
		if given == nil {
			if err := json.Unmarshal(raw, &given); err != nil {
				return err
			}
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if text, ok := given[name]; !ok || string(text) == "null" {
			return writ.Fail(writ.Invalid, fmt.Sprintf("JSON: field %q is missing; send it", name), nil)
		}
	}
	return nil
}

func readAll(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, writ.Fail(writ.TooLarge, fmt.Sprintf("the request is larger than %d bytes; send less", tooLarge.Limit), nil)
	}
	if err != nil {
		return nil, writ.Fail(writ.Invalid, "the request did not arrive whole; send it again", err)
	}
	return b, nil
}

// required lists the fields that a body must have.
func required(body reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range reflect.VisibleFields(body) {
		tag := f.Tag.Get("json")
		if !strings.Contains(tag, ",omitempty") && !strings.Contains(tag, ",omitzero") {
			out = append(out, f)
		}
	}
	return out
}
