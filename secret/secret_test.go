package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

const value = "s3cr3t-value-1"

// I7: a value prints in no way that a program prints things.
func TestValueDoesNotPrint(t *testing.T) {
	type outer struct {
		Open   Value
		hidden Value
		list   []Value
	}
	v := New(value)
	o := outer{v, v, []Value{v}}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "v", v, "o", o, "p", &v)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "v", v, "o", o, "p", &v)
	printed := []string{logged.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T"} {
		for _, a := range []any{v, &v, o, &o, []Value{v}, map[string]Value{"k": v}} {
			printed = append(printed, fmt.Sprintf(verb, a))
		}
	}
	for _, a := range []any{v, &v, o, map[string]any{"k": v}} {
		b, err := json.Marshal(a)
		if err != nil {
			t.Error(err)
		}
		printed = append(printed, string(b))
	}
	printed = append(printed, fmt.Errorf("it was %v: %w", v, errors.New("x")).Error(), writ.Fail(writ.Invalid, fmt.Sprint(v), nil).Error())
	for _, p := range printed {
		if strings.Contains(p, value) || strings.Contains(p, fmt.Sprintf("%x", value)) || strings.Contains(p, fmt.Sprint([]byte(value))) {
			t.Errorf("it shows: %s", p)
		}
	}
	if v.Reveal() != value || fmt.Sprint(v) != Shown {
		t.Errorf("%s, %v", v.Reveal(), v)
	}
}

func TestParseRef(t *testing.T) {
	for text, ok := range map[string]bool{
		"env:TOKEN": true, "env:": false, "env:1A": false, "env:A B": false, "ENV:A": false,
		"file:/etc/t": true, "file:etc/t": false, "file:/etc/../t": false, "file:/a//b": false, "file:/": false, "file:/a\x00": false,
		"keyring:github.token-1": true, "keyring:": false, "keyring:a/b": false, "keyring:-a": false,
		"store:github.token-1": true, "store:": false, "store:a/b": false, "store:.a": false, "store:" + strings.Repeat("a", 65): false,
		"vault:team/github#token": true, "vault:team#": false, "vault:team": false, "vault:../sys#x": false, "vault:a//b#x": false, "vault:a%2fb#x": false, "vault:a?b#x": false, "vault:a/./b#x": false,
		"": false, "ghp_" + value: false, "k8s:x": false, " env:A": false,
	} {
		r, err := ParseRef(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && r.String() != text {
			t.Errorf("%q reads back as %q", text, r)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("the error repeats it: %v", err)
		}
	}
}

func TestEnv(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", value)
	set := Set{"env": Env{}}
	if v, err := set.Resolve(context.Background(), Ref{Backend: "env", Name: "WRIT_TEST_SECRET"}); err != nil || v.Reveal() != value {
		t.Error(v, err)
	}
	if _, err := set.Resolve(context.Background(), Ref{Backend: "env", Name: "WRIT_TEST_NONE"}); writ.KindOf(err) != writ.NotFound {
		t.Error(err)
	}
}

type rows map[string][]byte

func (r rows) Secret(_ context.Context, name string) ([]byte, bool, error) {
	b, ok := r[name]
	return b, ok, nil
}

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	ctx := context.Background()
	kept := rows{}
	set := Set{"store": Store{kept, KeyFile(file)}}
	get := func(name string) (Value, error) { return set.Resolve(ctx, Ref{Backend: "store", Name: name}) }
	if _, err := get("a"); err == nil || !strings.Contains(err.Error(), "writ secret set a") {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("looking made a key")
	}
	k, err := KeyFile(file).Make(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 || info.Size() != keyBytes {
		t.Errorf("%v", info)
	}
	kept["a"] = k.Seal("a", New(value))
	if bytes.Contains(kept["a"], []byte(value)) || bytes.Equal(kept["a"], k.Seal("a", New(value))) {
		t.Error("it is not encrypted, or the same twice")
	}
	again, err := KeyFile(file).Make(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.Open("a", kept["a"]); err != nil || v.Reveal() != value {
		t.Error(err)
	}
	if v, err := get("a"); err != nil || v.Reveal() != value {
		t.Error(v, err)
	}
	kept["b"] = kept["a"] // put under another name
	kept["c"] = append(bytes.Clone(kept["a"][:len(kept["a"])-1]), kept["a"][len(kept["a"])-1]^1)
	kept["d"] = nil
	for _, name := range []string{"b", "c", "d"} {
		if v, err := get(name); err == nil {
			t.Errorf("%s opens: %d bytes", name, len(v.Reveal()))
		}
	}
	os.Chmod(file, 0o644)
	if _, err := get("a"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others read: %v", err)
	}
	os.Remove(file)
	if _, err := get("a"); err == nil {
		t.Error("without its key it opens")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a lost key was made anew, over what it sealed")
	}
}
