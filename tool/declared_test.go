package tool

import (
	"testing"

	"github.com/writ-run/writ"
)

// Annotations raise a class and lower none (R5).
func TestDeclared(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		d         Definition
		class     writ.Class
		dangerous bool
	}{
		"nothing said":                  {Definition{}, writ.ClassWrite, false},
		"none":                          {Definition{Class: writ.ClassNone}, writ.ClassNone, false},
		"said dangerous":                {Definition{Class: writ.ClassNone, Dangerous: true}, writ.ClassNone, true},
		"destructive":                   {Definition{Class: writ.ClassNone, Hints: Hints{Destructive: &yes}}, writ.ClassNone, true},
		"not destructive":               {Definition{Class: writ.ClassNone, Hints: Hints{Destructive: &no}}, writ.ClassNone, false},
		"dangerous, not destructive":    {Definition{Class: writ.ClassNone, Dangerous: true, Hints: Hints{Destructive: &no}}, writ.ClassNone, true},
		"write that promises to read":   {Definition{Class: writ.ClassWrite, Hints: Hints{ReadOnly: &yes, OpenWorld: &no, Idempotent: &yes}}, writ.ClassWrite, false},
		"read_only in a closed world":   {Definition{Class: writ.ClassReadOnly, Hints: Hints{ReadOnly: &yes, OpenWorld: &no}}, writ.ClassReadOnly, false},
		"none that changes inside":      {Definition{Class: writ.ClassNone, Hints: Hints{ReadOnly: &no, OpenWorld: &no}}, writ.ClassNone, false},
		"none in an open world":         {Definition{Class: writ.ClassNone, Hints: Hints{OpenWorld: &yes}}, writ.ClassReadOnly, false},
		"none that reads an open one":   {Definition{Class: writ.ClassNone, Hints: Hints{OpenWorld: &yes, ReadOnly: &yes}}, writ.ClassReadOnly, false},
		"none that changes an open one": {Definition{Class: writ.ClassNone, Hints: Hints{OpenWorld: &yes, ReadOnly: &no}}, writ.ClassWrite, false},
		"destroys in an open world":     {Definition{Class: writ.ClassNone, Hints: Hints{OpenWorld: &yes, Destructive: &yes}}, writ.ClassWrite, true},
	} {
		if class, dangerous := c.d.Declared(); class != c.class || dangerous != c.dangerous {
			t.Errorf("%s: %s, dangerous %v; want %s, %v", name, class, dangerous, c.class, c.dangerous)
		}
	}
}
