package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLeaveOut(t *testing.T) {
	const status = " D .vscode/a\x00 D .vscode/b\x00 M src/x.go\x00T  sub/.envrc\x00?? key.pem\x00 M .VSCode/c\x00?? two\nlines/.mcp.json\x00"
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{nil, []string{".vscode/a", ".vscode/b", "sub/.envrc", "key.pem", ".VSCode/c", "two\nlines/.mcp.json"}},
		{[]string{"/ws/h"}, []string{".vscode/a", ".vscode/b", "sub/.envrc", "key.pem", ".VSCode/c", "two\nlines/.mcp.json"}},
		{[]string{"/ws/h/.vscode", "/ws/h/sub"}, []string{"sub/.envrc", "key.pem", ".VSCode/c", "two\nlines/.mcp.json"}},
		{[]string{"/ws/h/.vscode/a", "/ws/h/sub/.envrc", "/ws/h/key.pem"}, []string{".vscode/b", ".VSCode/c", "two\nlines/.mcp.json"}},
	} {
		if got := leaveOut(status, c.paths); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.paths, got, c.want)
		}
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf(".idea/%d\n", i))
	}
	if got := leftOut(many); strings.Count(got, "\n") != 1 || !strings.Contains(got, `".idea/9\n", and 2 more]`) {
		t.Errorf("%q", got)
	}
}
