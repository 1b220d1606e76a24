package tool

import (
	"strings"
	"testing"
)

func TestCheckServerName(t *testing.T) {
	for name, ok := range map[string]bool{
		"github": true, "my_server": true, "a-b_c-1": true, "9p": true, "a": true, strings.Repeat("a", 32): true,
		"": false, "A": false, "a__b": false, "a_": false, "_a": false, "-a": false, "a.b": false, "a b": false, "é": false,
		"builtin": false, "writ": false, "writhe": false, "writ_x": false, strings.Repeat("a", 33): false, "a\n": false,
	} {
		if err := CheckServerName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
