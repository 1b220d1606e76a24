package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

// keys are the JSON keys of a type.
func keys(t reflect.Type) []string {
	out := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && name != "-" {
			out[name] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// Twins that no Go conversion holds equal say the same on the wire.
func TestTwins(t *testing.T) {
	for ours, theirs := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[engine.Agent]():        reflect.TypeFor[client.Agent](),
		reflect.TypeFor[engine.Node]():         reflect.TypeFor[client.Node](),
		reflect.TypeFor[nodeShape]():           reflect.TypeFor[client.Node](),
		reflect.TypeFor[engine.ToolDiff]():     reflect.TypeFor[client.ToolDiff](),
		reflect.TypeFor[engine.DriverReport](): reflect.TypeFor[client.DriverReport](),
		reflect.TypeFor[approval.Shown]():      reflect.TypeFor[client.Shown](),
		reflect.TypeFor[config.Request]():      reflect.TypeFor[client.Reach](),
		reflect.TypeFor[config.Overrides]():    reflect.TypeFor[client.Overrides](),
	} {
		if diff := cmp.Diff(keys(ours), keys(theirs)); diff != "" {
			t.Errorf("%v and %v: %s", ours, theirs, diff)
		}
	}
}

// What is copied by hand crosses the door whole: of a value with everything in it
// nothing is left out, but what is said here to come from elsewhere.
func TestCopiesAreWhole(t *testing.T) {
	var r approval.Request
	fill(reflect.ValueOf(&r).Elem())
	a := approvalView(r)
	whole := engine.Invocation{Invocation: r.Invocation, Resolution: &store.Resolution{Happened: "yes", Note: "n", By: "b", At: "a"}}
	for _, c := range []struct {
		v         any
		elsewhere []string
	}{
		{a, []string{"Preview", "Display", "Grant", "Blocked"}}, {*a.Shown, nil}, {a.Votes[0], nil}, {a.LedTo[0], []string{"Resolution", "Result", "Error", "Args"}},
		{wholeInvocation(whole), []string{"Result", "Error", "Args"}}, {*wholeInvocation(whole).Resolution, nil},
	} {
		v := reflect.ValueOf(c.v)
		for _, f := range reflect.VisibleFields(v.Type()) {
			if v.FieldByIndex(f.Index).IsZero() != slices.Contains(c.elsewhere, f.Name) {
				t.Errorf("%T.%s is %v", c.v, f.Name, v.FieldByIndex(f.Index))
			}
		}
	}
}

// fill gives everything below v a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	}
}

// A tool's definition crosses the door whole: nothing of what its digest covers is
// lost on the way.
func TestToolsCrossWhole(t *testing.T) {
	w := newWorld(t)
	tools, err := w.operator.Tools().All(t.Context())
	must(t, err)
	if len(tools) < 10 {
		t.Errorf("%d tools", len(tools))
	}
	for _, got := range tools {
		whole, err := w.engine.Tool("", got.Name)
		must(t, err)
		if got.Digest != whole.Digest.String() {
			t.Errorf("%s has another digest", got.Name)
		}
		got.Digest, got.State, got.Held, got.Counts = "", "", "", nil
		b, err := json.Marshal(got)
		must(t, err)
		var x, y map[string]any
		must(t, json.Unmarshal(b, &x))
		must(t, json.Unmarshal([]byte(whole.Canonical()), &y))
		delete(x, "digest")
		if diff := cmp.Diff(y, x); diff != "" {
			t.Errorf("%s: %s", got.Name, diff)
		}
	}
}
