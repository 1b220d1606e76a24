package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// page is a text in the exposition format of Prometheus, version 0.0.4: counters and
// gauges, whole numbers.
type page struct {
	strings.Builder
	name string // of the family that samples are of
}

// family begins what belongs to one name.
func (p *page) family(name, kind, help string) *page {
	p.name = name
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	return p
}

// escape is what the format asks of the value of a label.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// sample is one value, with labels and their values in turn.
func (p *page) sample(v int64, labels ...string) *page {
	var of []string
	for i := 0; i < len(labels); i += 2 {
		of = append(of, labels[i]+`="`+escape.Replace(labels[i+1])+`"`)
	}
	p.WriteString(p.name)
	if len(of) > 0 {
		p.WriteString("{" + strings.Join(of, ",") + "}")
	}
	fmt.Fprintf(p, " %d\n", v)
	return p
}

// each is a sample for each counter.
func (p *page) each(label string, c counters) {
	for _, word := range slices.Sorted(maps.Keys(c)) {
		p.sample(c[word].Load(), label, word)
	}
}
