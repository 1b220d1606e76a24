package files

import (
	"context"
	"encoding/json"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// decode reads arguments that the schema has already been held against.
func decode(w writ.Writ, into any) error {
	if !w.Valid() {
		return writ.Fail(writ.Internal, "there is no writ for this call", nil)
	}
	if err := json.Unmarshal([]byte(w.Call().Args), into); err != nil {
		return writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	return nil
}

// guarded makes sure that no tool of the family starts without its writ.
func guarded(run tool.Func) tool.Func {
	return func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		if !w.Valid() {
			return writ.Result{}, writ.Fail(writ.Internal, "there is no writ for this call", nil)
		}
		return run(ctx, w)
	}
}

var (
	reads = policy.Files{Read: policy.Paths("/**"), Write: policy.Globs{Stance: policy.None}}
	// A changing tool also reads what it changes, but its arguments are held
	// against the write side.
	writes = policy.Files{Read: policy.Paths("/**"), Write: policy.Paths("/**")}
)

// Tools are the tools of the family.
func Tools() ([]*tool.Tool, error) {
	var out []*tool.Tool
	for _, d := range definitions {
		t, err := tool.New(d.Definition, guarded(d.run))
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

type definition struct {
	tool.Definition
	run tool.Func
}

func define(name, title, description string, act action.Type, files policy.Files, risk action.Risk, schema string, run tool.Func, examples []tool.Example, failures ...string) definition {
	return definition{tool.Definition{
		Name: name, Title: title, Description: description, Category: action.FileSystem, Action: act, Class: writ.ClassNone, Tier: "cheap",
		Policy: policy.Policy{Risk: risk, Files: files, Network: policy.Network{Stance: policy.None}, Env: policy.Env{Stance: policy.None}, Exec: policy.None},
		Schema: json.RawMessage(schema), Examples: examples, Failures: failures, Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.Builtin},
	}, run}
}

func example(what, args string) []tool.Example {
	return []tool.Example{{What: what, Args: json.RawMessage(args)}}
}

var definitions = []definition{
	define("read_file", "Read a file", "Read a text file, whole or a range of lines. At most 1 MiB is returned, with a notice when more is there.",
		"code:read", reads, action.Low, `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"path":{"type":"string","x-writ-path":"read","description":"File to read, absolute or relative to the workspace."},
			"start_line":{"type":"integer","minimum":1,"maximum":1000000000000,"description":"First line, counted from 1."},
			"end_line":{"type":"integer","minimum":1,"maximum":1000000000000,"description":"Last line, inclusive."}}}`,
		readFile, example("the first ten lines", `{"path":"README.md","start_line":1,"end_line":10}`),
		"the file does not exist, is a directory, is binary or is not UTF-8", "the path is outside what the agent may reach"),
	define("write_file", "Write a file", "Create a file or replace it whole, atomically; the mode of a file that was there is kept. At most 10 MiB.",
		"code:write", writes, action.Medium, `{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{
			"path":{"type":"string","x-writ-path":"write","description":"File to write."},
			"content":{"type":"string","x-writ-text":true,"description":"The whole new content."},
			"create_directories":{"type":"boolean","description":"Make missing directories above the file."}}}`,
		writeFile, example("a new file", `{"path":"notes/today.md","content":"# Today\n","create_directories":true}`),
		"the directory does not exist", "the path is protected", "the content is larger than 10 MiB"),
	define("edit_file", "Edit a file", "Replace text in a file. Each old_text must occur exactly once unless replace_all is set; several edits are applied in order, all or none.",
		"code:write", writes, action.Medium, `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"path":{"type":"string","x-writ-path":"write","description":"File to edit."},
			"old_text":{"type":"string","x-writ-text":true,"description":"Text to find, exactly as it stands in the file."},
			"new_text":{"type":"string","x-writ-text":true,"description":"Text to put there."},
			"replace_all":{"type":"boolean","description":"Replace every occurrence."},
			"edits":{"type":"array","minItems":1,"maxItems":100,"description":"Several edits instead of one.","items":{"type":"object","additionalProperties":false,"required":["old_text","new_text"],"properties":{
				"old_text":{"type":"string","x-writ-text":true},"new_text":{"type":"string","x-writ-text":true},"replace_all":{"type":"boolean"}}}}}}`,
		editFile, example("one change", `{"path":"main.go","old_text":"Println(1)","new_text":"Println(2)"}`),
		"old_text is not in the file, or not unique", "the file is binary or larger than 10 MiB"),
	define("list_directory", "List a directory", "List what a directory holds, in order, with kinds and sizes. At most 1000 entries; symlinks are shown and not followed.",
		"code:read", reads, action.Low, `{"type":"object","additionalProperties":false,"properties":{
			"path":{"type":"string","x-writ-path":"read","description":"Directory; the workspace when left out."},
			"pattern":{"type":"string","x-writ-text":true,"description":"Glob over names, such as *.go or src/**/*.ts."},
			"recursive":{"type":"boolean","description":"Go into directories below."}}}`,
		listDirectory, example("every Go file", `{"pattern":"*.go","recursive":true}`),
		"the directory does not exist", "there are more than 200000 entries"),
	define("search_files", "Search in files", "Search text files below a directory with a regular expression (RE2). Skips binary files, .git and files that hold secrets. At most 1000 matches.",
		"code:read", reads, action.Low, `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
			"pattern":{"type":"string","minLength":1,"x-writ-text":true,"description":"Regular expression, RE2 syntax."},
			"path":{"type":"string","x-writ-path":"read","description":"Directory; the workspace when left out."},
			"glob":{"type":"string","x-writ-text":true,"description":"Only files whose name matches, such as *.go."},
			"ignore_case":{"type":"boolean"}}}`,
		searchFiles, example("where a function is called", `{"pattern":"parseConfig\\(","glob":"*.go"}`),
		"the pattern is not a regular expression"),
	define("delete_file", "Delete a file", "Delete one file. Directories are not deleted.",
		"code:delete", writes, action.High, `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"path":{"type":"string","x-writ-path":"write","x-writ-link":true,"description":"File to delete; of a symlink, the link and not what it points at."}}}`,
		deleteFile, example("a leftover", `{"path":"tmp/out.txt"}`), "the file does not exist or is a directory"),
	define("move_file", "Move a file", "Move or rename a file or directory. A file that is there is replaced only with overwrite.",
		"code:write", writes, action.Medium, `{"type":"object","additionalProperties":false,"required":["source","destination"],"properties":{
			"source":{"type":"string","x-writ-path":"write","description":"What to move."},
			"destination":{"type":"string","x-writ-path":"write","description":"Its new path, the name included."},
			"overwrite":{"type":"boolean","description":"Replace a file at the destination."}}}`,
		moveFile, example("a rename", `{"source":"old.txt","destination":"new.txt"}`), "the destination is there already"),
	define("stat", "Look at a file", "Kind, size, mode and time of a file or directory; a symlink is not followed.",
		"code:read", reads, action.Low, `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"path":{"type":"string","x-writ-path":"read","x-writ-link":true,"description":"What to look at."}}}`,
		stat, example("how large a log is", `{"path":"build.log"}`), "it does not exist"),
}
