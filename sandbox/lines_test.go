package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func (l Lines) text() string {
	var all []string
	for _, line := range l.Parsed {
		all = append(all, string(line))
	}
	return strings.Join(all, " ")
}

func TestReadLines(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", longestLine) + `"}`
	for name, tc := range map[string]struct {
		in              string
		most            int64
		want            string
		malformed, left int
	}{
		"nothing":                {"", 100, "", 0, 0},
		"empty lines":            {"\n\n \r\n", 100, "", 0, 0},
		"one":                    {`{"a":1}` + "\n", 100, `{"a":1}`, 0, 0},
		"without a newline":      {`{"a":1}`, 100, `{"a":1}`, 0, 0},
		"space, carriage return": {" {\"a\" : 1}\r\n{\"b\":2}\n", 100, `{"a":1} {"b":2}`, 0, 0},
		"malformed between":      {"{\"a\":1}\n{\"a\":\nnot JSON\n{\"b\":2}\n", 100, `{"a":1} {"b":2}`, 2, 0},
		"no objects":             {"1\n[{}]\nnull\n\"{}\"\n", 100, "", 4, 0},
		"two on a line":          {"{} {}\n{}{}\n", 100, "", 2, 0},
		"not UTF-8, NUL":         {"{\"a\":\"\xff\"}\n\x00\n{}\n", 100, "{}", 2, 0},
		"too long":               {long + "\n{}\n", 1 << 20, "{}", 1, 0},
		"too long, at the end":   {"{}\n" + long + long, 1 << 20, "{}", 1, 0},
		"no more room":           {"{\"a\":1}\n{\"b\":2}\n{}\nx\n", 9, `{"a":1}`, 1, 2},
		"no room":                {"{}\n", 0, "", 0, 1},
		"deep":                   {strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001) + "\n{}\n", 100, "{}", 1, 0},
	} {
		for how, r := range map[string]io.Reader{"whole": strings.NewReader(tc.in), "in bytes": iotest.OneByteReader(strings.NewReader(tc.in))} {
			l, err := ReadLines(r, tc.most)
			if err != nil || l.text() != tc.want || l.Malformed != tc.malformed || l.Left != tc.left {
				t.Errorf("%s, %s: %q, %d malformed, %d left, %v; want %q, %d, %d", name, how, l.text(), l.Malformed, l.Left, err, tc.want, tc.malformed, tc.left)
			}
		}
	}
}

// What had come before a failure counts.
func TestReadLinesFailing(t *testing.T) {
	broken := errors.New("broken")
	l, err := ReadLines(io.MultiReader(strings.NewReader("{}\n{\"a\":"), iotest.ErrReader(broken)), 100)
	if !errors.Is(err, broken) || l.text() != "{}" || l.Malformed != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

// A sidecar that never ends is listened to for as long as it may take, and is then closed.
func TestListen(t *testing.T) {
	said, says := io.Pipe()
	go io.WriteString(says, "{\"a\":1}\nhalf")
	c := &Container{Said: said}
	began := time.Now()
	if err := c.listen(50*time.Millisecond, 100); err == nil {
		t.Error("it ended by itself")
	}
	if took := time.Since(began); took > 5*time.Second || c.Lines.text() != `{"a":1}` || c.Said != nil {
		t.Errorf("after %s: %+v", took, c)
	}
	if _, err := says.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it was not closed: %v", err)
	}
}

func FuzzReadLines(f *testing.F) {
	for _, s := range []string{"{}\n", "{\"a\":1}\n\n[1]\n{", "\xff\n{}\r\n", " { \"k\" : [ 1 , 2 ] } \n"} {
		f.Add(s, int64(20))
	}
	f.Fuzz(func(t *testing.T, in string, most int64) {
		l, err := ReadLines(strings.NewReader(in), most)
		if err != nil {
			t.Fatal(err)
		}
		size, lines := int64(0), 0
		for _, p := range l.Parsed {
			if size += int64(len(p)); !json.Valid(p) || p[0] != '{' || strings.ContainsAny(string(p), "\n") {
				t.Errorf("kept %q", p)
			}
		}
		for line := range strings.Lines(in) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if size > max(most, 0) || len(l.Parsed)+l.Malformed+l.Left != lines {
			t.Errorf("%d bytes of at most %d; %+v of %d lines", size, most, l, lines)
		}
		kept, err := json.Marshal(l.Parsed)
		if err != nil || int64(len(kept)) < size {
			t.Errorf("what was kept is no JSON: %q, %v", l.Parsed, err)
		}
	})
}
