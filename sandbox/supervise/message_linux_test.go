package supervise

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJobIsBytes: arguments and names need not be text.
func TestJobIsBytes(t *testing.T) {
	type job struct {
		Command
		Grants map[string]uint64
	}
	j := job{Command{Path: "/\xff", Argv: []string{"", "\xff\xfe", "a\nb"}, Env: []string{"A=\x80"}}, map[string]uint64{"/\xc0": 1 << 60}}
	text, err := encode(j)
	if err != nil {
		t.Fatal(err)
	}
	passed, got, err := take[job](bytes.NewReader(append(text, msgTerm)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(j, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !bytes.Equal(passed, text) {
		t.Error("what is passed on is not what came")
	}
	if _, _, err := take[job](bytes.NewReader(text[:len(text)-1])); err == nil {
		t.Error("half a job was taken")
	}
	if _, _, err := take[job](bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff})); err == nil {
		t.Error("a job without end was taken")
	}
}
