package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/writ-run/writ/strict"
)

// expectations say which scenarios fail for a reason, by column: VERSION/SCENARIO and
// the reason.
type expectations struct {
	Behind map[string]string `yaml:"behind"`
	Own    map[string]string `yaml:"own"`
}

func readExpected(path string) (map[string]map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var e expectations
	f := strict.File{Name: path, What: "a list of expected failures", Empty: "name a column"}
	f.Read(text, &e)
	if err := f.Err(); err != nil {
		return nil, errors.New(strict.Describe(err))
	}
	return map[string]map[string]string{"behind": e.Behind, "own": e.Own}, nil
}

// table is what came of everything.
type table struct {
	expected map[string]map[string]string // by column
	rows     map[string]map[string]result // by VERSION/SCENARIO, then by column
	order    []string                     // of rows
	unpassed []string                     // runs in which something required fails
}

var columnNames = []string{"direct", "behind", "own"}

func (t *table) add(column string, r oneRun, results map[string]result, passed bool) {
	if t.rows == nil {
		t.rows = map[string]map[string]result{}
	}
	for _, scenario := range slices.Sorted(maps.Keys(results)) {
		row := r.version + "/" + scenario
		if t.rows[row] == nil {
			t.rows[row] = map[string]result{}
			t.order = append(t.order, row)
		}
		t.rows[row][column] = results[scenario]
	}
	if r.scored && !passed && column != "direct" {
		t.unpassed = append(t.unpassed, column+": a scenario that "+r.version+" requires fails")
	}
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "VERSION\tSCENARIO\tDIRECT\tBEHIND\tOWN")
	for _, row := range t.order {
		version, scenario, _ := strings.Cut(row, "/")
		fmt.Fprintf(tw, "%s\t%s", version, scenario)
		for _, c := range columnNames {
			r, ran := t.rows[row][c]
			fmt.Fprint(tw, "\t"+r.text(ran))
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	for _, row := range t.order {
		for _, c := range columnNames[1:] {
			if got := t.rows[row][c]; got.warned > 0 {
				fmt.Fprintf(w, "%s: %s:\n    %s\n", c, row, strings.Join(got.why, "\n    "))
			}
		}
	}
}

// text is a cell: how many checks passed, of how many.
func (r result) text(ran bool) string {
	switch {
	case !ran:
		return "·"
	case r.passed+r.failed+r.warned == 0:
		return "skipped"
	}
	s := fmt.Sprintf("%d/%d", r.passed, r.passed+r.failed)
	if r.warned > 0 {
		s += fmt.Sprintf(" %dw", r.warned)
	}
	return s
}

// judge says what is other than it should be.
func (t *table) judge() error {
	wrong := slices.Clone(t.unpassed)
	for _, row := range t.order {
		cells := t.rows[row]
		for _, c := range []string{"behind", "own"} {
			got, ran := cells[c]
			_, expected := t.expected[c][row]
			there, compared := cells["direct"]
			switch {
			case !ran:
				wrong = append(wrong, c+": "+row+" did not run")
			case expected && got.failed == 0:
				wrong = append(wrong, c+": "+row+" passes; take it out of expected.yaml")
			case got.failed == 0 || expected:
			case c == "behind" && compared && there.failed > 0: // the server itself fails it
			default:
				wrong = append(wrong, c+": "+row+" fails:\n    "+strings.Join(got.why, "\n    "))
			}
		}
	}
	for c, rows := range t.expected {
		for row := range rows {
			if t.rows[row] == nil {
				wrong = append(wrong, c+": there is no "+row+"; take it out of expected.yaml")
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%d wrong:\n  %s", len(wrong), strings.Join(wrong, "\n  "))
}
