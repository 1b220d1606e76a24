package files

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

// Every bad set of arguments, and what the caller is told.
func TestMalformedArguments(t *testing.T) {
	for _, row := range []struct{ tool, args, want string }{
		{"read_file", `{}`, `argument "path" is missing; it takes end_line, path, start_line`},
		{"read_file", `{"file":"x"}`, `unknown argument "file"; it takes end_line, path, start_line`},
		{"read_file", `{"pth":"x"}`, `unknown argument "pth"; did you mean path?`},
		{"read_file", `{"Path":"x"}`, `unknown argument "Path"; did you mean path?`},
		{"read_file", `{"path":"x","startline":1}`, `unknown argument "startline"; did you mean start_line?`},
		{"read_file", `{"path":null}`, `argument "path": want a string, not null`},
		{"read_file", `{"path":5}`, `argument "path": want a string, not a number`},
		{"read_file", `{"path":true}`, `argument "path": want a string, not a boolean`},
		{"read_file", `{"path":["x"]}`, `argument "path": want a string, not an array`},
		{"read_file", `{"path":{"x":"y"}}`, `argument "path": want a string, not an object`},
		{"read_file", `{"path":"x","start_line":0}`, `argument "start_line": it must be at least 1`},
		{"read_file", `{"path":"x","start_line":-1}`, `argument "start_line": it must be at least 1`},
		{"read_file", `{"path":"x","start_line":1.5}`, `argument "start_line": want an integer, not a fraction`},
		{"read_file", `{"path":"x","start_line":"one"}`, `argument "start_line": want an integer, not a string`},
		{"read_file", `{"path":"x","start_line":""}`, `argument "start_line": want an integer, not a string`},
		{"read_file", `{"path":"x","start_line":"0"}`, `argument "start_line": it must be at least 1`},
		{"read_file", `{"path":"x","start_line":"1-5"}`, `argument "start_line": want an integer, not a string`},
		{"read_file", `{"path":"x","start_line":null}`, `argument "start_line": want an integer, not null`},
		{"read_file", `{"path":"x","start_line":[1,5]}`, `argument "start_line": want an integer, not an array`},
		{"read_file", `{"path":"x","end_line":true}`, `argument "end_line": want an integer, not a boolean`},
		{"read_file", `{"path":"x","end_line":1e300}`, `argument "end_line": it must be at most 1000000000000`},
		{"write_file", `{}`, `argument "path" is missing; it takes content, create_directories, path`},
		{"write_file", `{"path":"x"}`, `argument "content" is missing; it takes content, create_directories, path`},
		{"write_file", `{"content":"x"}`, `argument "path" is missing; it takes content, create_directories, path`},
		{"write_file", `{"path":"x","contents":"y"}`, `unknown argument "contents"; did you mean content?`},
		{"write_file", `{"path":"x","content":null}`, `argument "content": want a string, not null`},
		{"write_file", `{"path":"x","content":5}`, `argument "content": want a string, not a number`},
		{"write_file", `{"path":"x","content":{"a":1}}`, `argument "content": want a string, not an object`},
		{"write_file", `{"path":"x","content":["a"]}`, `argument "content": want a string, not an array`},
		{"write_file", `{"path":"x","content":"y","create_directories":"yes"}`, `argument "create_directories": want a boolean, not a string`},
		{"write_file", `{"path":"x","content":"y","create_directories":1}`, `argument "create_directories": want a boolean, not a number`},
		{"write_file", `{"path":"x","content":"y","create_directory":true}`, `unknown argument "create_directory"; it takes content, create_directories, path`},
		{"write_file", `{"path":"x","content":"y","mode":"0644"}`, `unknown argument "mode"; it takes content, create_directories, path`},
		{"edit_file", `{"old_text":"a","new_text":"b"}`, `argument "path" is missing; it takes edits, new_text, old_text, path, replace_all`},
		{"edit_file", `{"path":"x","old":"a"}`, `unknown argument "old"; it takes edits, new_text, old_text, path, replace_all`},
		{"edit_file", `{"path":"x","old_txt":"a"}`, `unknown argument "old_txt"; did you mean old_text?`},
		{"edit_file", `{"path":"x","old_text":1}`, `argument "old_text": want a string, not a number`},
		{"edit_file", `{"path":"x","old_text":"a","new_text":null}`, `argument "new_text": want a string, not null`},
		{"edit_file", `{"path":"x","old_text":"a","new_text":"b","replace_all":"all"}`, `argument "replace_all": want a boolean, not a string`},
		{"edit_file", `{"path":"x","edits":[]}`, `argument "edits": it has 0 items; at least 1 are needed`},
		{"edit_file", `{"path":"x","edits":{}}`, `argument "edits": want an array, not an object`},
		{"edit_file", `{"path":"x","edits":"a"}`, `argument "edits": want an array, not a string`},
		{"edit_file", `{"path":"x","edits":["a"]}`, `argument "edits[0]": want an object, not a string`},
		{"edit_file", `{"path":"x","edits":[{}]}`, `argument "edits[0].old_text" is missing; it takes new_text, old_text, replace_all`},
		{"edit_file", `{"path":"x","edits":[{"old_text":"a","new_text":"b"},{"old_text":"a"}]}`, `argument "edits[1].new_text" is missing; it takes new_text, old_text, replace_all`},
		{"edit_file", `{"path":"x","edits":[{"old_text":"a","new_text":5}]}`, `argument "edits[0].new_text": want a string, not a number`},
		{"edit_file", `{"path":"x","edits":[{"old_text":"a","new_text":"b","path":"y"}]}`, `unknown argument "edits[0].path"; it takes new_text, old_text, replace_all`},
		{"edit_file", `{"path":"x","edits":[{"old_text":"a","new_text":"b","replace_al":true}]}`, `unknown argument "edits[0].replace_al"; did you mean replace_all?`},
		{"edit_file", `{"path":"x","edits":[` + strings.Repeat(`{"old_text":"a","new_text":"b"},`, 100) + `{"old_text":"a","new_text":"b"}]}`, `argument "edits": it has 101 items; at most 100 are taken`},
		{"list_directory", `{"path":5}`, `argument "path": want a string, not a number`},
		{"list_directory", `{"recursive":"y"}`, `argument "recursive": want a boolean, not a string`},
		{"list_directory", `{"recursive":null}`, `argument "recursive": want a boolean, not null`},
		{"list_directory", `{"glob":"*"}`, `unknown argument "glob"; it takes path, pattern, recursive`},
		{"list_directory", `{"patern":"*"}`, `unknown argument "patern"; did you mean pattern?`},
		{"search_files", `{}`, `argument "pattern" is missing; it takes glob, ignore_case, path, pattern`},
		{"search_files", `{"pattern":""}`, `argument "pattern": it has 0 characters; at least 1 are needed`},
		{"search_files", `{"pattern":5}`, `argument "pattern": want a string, not a number`},
		{"search_files", `{"pattern":"x","glob":["*.go"]}`, `argument "glob": want a string, not an array`},
		{"search_files", `{"pattern":"x","ignorecase":true}`, `unknown argument "ignorecase"; did you mean ignore_case?`},
		{"delete_file", `{}`, `argument "path" is missing; it takes path`},
		{"delete_file", `{"path":["a","b"]}`, `argument "path": want a string, not an array`},
		{"delete_file", `{"path":"x","recursive":true}`, `unknown argument "recursive"; it takes path`},
		{"move_file", `{"source":"a"}`, `argument "destination" is missing; it takes destination, overwrite, source`},
		{"move_file", `{"destination":"a"}`, `argument "source" is missing; it takes destination, overwrite, source`},
		{"move_file", `{"src":"a","dst":"b"}`, `unknown argument "dst"; it takes destination, overwrite, source`},
		{"move_file", `{"source":"a","destination":null}`, `argument "destination": want a string, not null`},
		{"move_file", `{"source":"a","destination":"b","overwrite":"force"}`, `argument "overwrite": want a boolean, not a string`},
		{"stat", `{}`, `argument "path" is missing; it takes path`},
		{"stat", `{"path":"x","follow":true}`, `unknown argument "follow"; it takes path`},
	} {
		_, _, err := named(t, row.tool).Args([]byte(row.args))
		var e *writ.Error
		if !errors.As(err, &e) || e.Kind != writ.Invalid || e.Msg != row.tool+": "+row.want {
			t.Errorf("%s %.100s:\n  got  %v\n  want %s", row.tool, row.args, err, row.want)
		}
	}
}

// The examples that models are shown work.
func TestExamplesAreValid(t *testing.T) {
	all, err := tools()
	must(t, err)
	if len(all) != 8 {
		t.Errorf("%d tools", len(all))
	}
	for _, tl := range all {
		if len(tl.Examples) == 0 || len(tl.Failures) == 0 || tl.Description == "" {
			t.Errorf("%s lacks an example, a failure mode or a description", tl.Name)
		}
		for _, e := range tl.Examples {
			if _, _, err := tl.Args(e.Args); err != nil {
				t.Errorf("%s: %v", tl.Name, err)
			}
		}
		var schema struct {
			Additional any `json:"additionalProperties"`
		}
		must(t, json.Unmarshal(tl.Schema, &schema))
		if schema.Additional != false {
			t.Errorf("%s takes any argument", tl.Name)
		}
	}
}
