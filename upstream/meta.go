package upstream

import (
	"bytes"
	"fmt"

	"github.com/writ-run/writ/wire"
)

// withMeta puts members into params._meta, over those that are there. All other
// bytes of params stay as they are. What is not one sound object is refused: it could
// end its request early and begin another.
func withMeta(params []byte, set ...metaMember) ([]byte, error) {
	if len(bytes.TrimSpace(params)) == 0 {
		if len(set) == 0 {
			return nil, nil
		}
		params = []byte("{}")
	}
	var old []byte
	empty := true
	loose, err := members(params, func(key, value []byte) {
		empty = false
		if string(key) == "_meta" {
			old = value
		}
	})
	if err == nil {
		err = loose
	}
	if err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	if len(set) == 0 {
		return params, nil
	}
	meta, err := mergeMeta(old, set)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(params)+len(meta)+16)
	if old != nil {
		at := cap(params) - cap(old) // where old begins: it is a part of params that reaches to the same end
		b = append(append(b, params[:at]...), meta...)
		return append(b, params[at+len(old):]...), nil
	}
	b = append(b, bytes.TrimRight(params, " \t\r\n")...)
	b = b[:len(b)-1]
	if !empty {
		b = append(b, ',')
	}
	return append(append(append(b, `"_meta":`...), meta...), '}'), nil
}

type metaMember struct {
	key   string
	value []byte // JSON
	keep  bool   // what the caller set stays
}

func mergeMeta(old []byte, set []metaMember) ([]byte, error) {
	b := []byte{'{'}
	put := func(key string, value []byte) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(wire.AppendString(b, key), ':'), value...)
	}
	kept := map[string]bool{}
	if len(old) > 0 && string(old) != "null" {
		if _, err := members(old, func(key, value []byte) {
			for _, m := range set {
				if m.key == string(key) && !m.keep {
					return
				}
			}
			kept[string(key)] = true
			put(string(key), value)
		}); err != nil {
			return nil, fmt.Errorf("params._meta: %w", err)
		}
	}
	for _, m := range set {
		if !kept[m.key] {
			put(m.key, m.value)
		}
	}
	return append(b, '}'), nil
}
