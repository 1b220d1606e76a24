package define

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/wire"
)

// Bounds on a command line, below the kernel's, so that the caller is told.
const (
	maxElement = 128<<10 - 1
	maxArgv    = 1 << 20
)

// plan is a runner ready for calls. It is not changed after it was made.
type plan struct {
	tool      string
	argv      []piece
	stdin     string // the argument whose text is the input
	stdinJSON bool   // the input is the arguments
	dir       string // the argument that is the working directory
	shape     *policy.Shape
}

// piece is a literal, or an argument's value behind its flag.
type piece struct {
	literal   string
	flag, arg string
	free      bool // a value may begin with -, since -- stands before it
}

func (p *plan) run(boxes exec.Starter) func(context.Context, writ.Writ) (writ.Result, error) {
	return func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		spec, err := p.spec(w.Call())
		if err != nil {
			return writ.Result{}, err
		}
		return exec.Run(ctx, boxes, w, spec)
	}
}

// spec is what a call runs.
func (p *plan) spec(c writ.Call) (sandbox.Spec, error) {
	var spec sandbox.Spec
	args, err := p.resolved(c)
	if err != nil {
		return spec, err
	}
	if spec.Argv, err = p.commandLine(args); err != nil {
		return spec, err
	}
	if p.dir != "" {
		spec.Dir, _ = args[p.dir].(string) // left out: the call's own
	}
	if p.stdinJSON {
		text, err := wire.Marshal(args)
		if err != nil {
			return spec, err
		}
		spec.Stdin = strings.NewReader(text)
	} else if p.stdin != "" {
		text, _ := args[p.stdin].(string)
		spec.Stdin = strings.NewReader(text)
	}
	return spec, nil
}

// resolved is the call's arguments with every annotated path as it was resolved and
// decided about: what the caller wrote may lead elsewhere by now.
func (p *plan) resolved(c writ.Call) (map[string]any, error) {
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		return nil, writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	paths := map[string]string{}
	for _, found := range p.shape.Candidates(args) {
		if found.Kind != writ.TargetPath || !found.Relative { // only annotated paths may be relative
			continue
		}
		for _, t := range c.Targets {
			if t.Pointer == found.Pointer && t.Value == found.Value && t.Kind == writ.TargetPath && t.Side == found.Side && t.Problem == "" {
				paths[t.Pointer] = t.Path
			}
		}
		if paths[found.Pointer] == "" {
			return nil, p.invalid("argument %s: the path was not resolved; report this as a bug", policy.Shown(found.Pointer))
		}
	}
	replace("", args, paths)
	return args, nil
}

// replace puts texts in by their JSON pointer.
func replace(at string, v any, texts map[string]string) any {
	switch v := v.(type) {
	case string:
		if text, ok := texts[at]; ok {
			return text
		}
	case []any:
		for i := range v {
			v[i] = replace(at+"/"+strconv.Itoa(i), v[i], texts)
		}
	case map[string]any:
		for k := range v {
			v[k] = replace(at+"/"+strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1"), v[k], texts)
		}
	}
	return v
}

func (p *plan) commandLine(args map[string]any) ([]string, error) {
	var argv []string
	total := 0
	for _, piece := range p.argv {
		if piece.arg == "" {
			argv = append(argv, piece.literal)
			continue
		}
		before := len(argv)
		var err error
		if argv, err = p.put(argv, piece, args[piece.arg]); err != nil {
			return nil, err
		}
		for _, e := range argv[before:] {
			if total += len(e) + 1; len(e) > maxElement || total > maxArgv {
				return nil, writ.Fail(writ.TooLarge, fmt.Sprintf("%s: argument %q is too large for a command line; give less", p.tool, piece.arg), nil)
			}
		}
	}
	return argv, nil
}

// put appends what one argument becomes; nothing for one that was left out.
func (p *plan) put(argv []string, at piece, v any) ([]string, error) {
	var text string
	switch v := v.(type) {
	case nil:
		return argv, nil
	case bool:
		if v {
			argv = append(argv, at.flag)
		}
		return argv, nil
	case []any:
		var err error
		for _, e := range v {
			if argv, err = p.put(argv, at, e); err != nil {
				return nil, err
			}
		}
		return argv, nil
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		text = v
	default:
		return nil, p.invalid("argument %q has no spelling on a command line", at.arg)
	}
	joined := strings.HasSuffix(at.flag, "=")
	switch {
	case strings.ContainsRune(text, 0):
		return nil, p.invalid("argument %q holds a NUL character; leave it out", at.arg)
	case strings.HasPrefix(text, "-") && !joined && !at.free:
		return nil, p.invalid("argument %q begins with -, which the program would read as an option; give another value", at.arg)
	case joined:
		return append(argv, at.flag+text), nil
	case at.flag != "":
		return append(argv, at.flag, text), nil
	}
	return append(argv, text), nil
}

func (p *plan) invalid(format string, args ...any) error {
	return writ.Fail(writ.Invalid, p.tool+": "+fmt.Sprintf(format, args...), nil)
}
