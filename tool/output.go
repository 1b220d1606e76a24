package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

// checked is a tool's function whose results are held against its output schema: a
// caller that was promised a shape gets that shape or an error it can see. What
// fits goes along as metadata, decoded.
func checked(d *Definition, run Func) (Func, error) {
	s, err := compile(d.Runner.Kind, d.Output)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		res, err := run(ctx, w)
		if err != nil || res.IsError {
			return res, err
		}
		canonical, err := wire.CanonicalObject([]byte(res.Content))
		if err != nil {
			return misfit(res, d.Name, "it is not a JSON object"), nil
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(canonical), &v); err != nil {
			return misfit(res, d.Name, "it is not a JSON object"), nil
		}
		if err := s.check("output", v); err != nil {
			_, msg := writ.Public(err)
			return misfit(res, d.Name, msg), nil
		}
		if res.Metadata == nil {
			res.Metadata = map[string]any{}
		}
		res.Metadata["structured"] = v
		return res, nil
	}, nil
}

func misfit(res writ.Result, name, why string) writ.Result {
	res.IsError = true
	res.Content = fmt.Sprintf("[tool %s ran, and its output does not fit its own schema: %s]\n%s", name, why, res.Content)
	return res
}
