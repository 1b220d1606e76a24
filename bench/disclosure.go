package main

import (
	"fmt"

	"github.com/writ-run/writ/disclose"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/admin"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/files"
)

// disclosure counts what a model reads of its tools: all definitions at once, and with
// disclosure, where three were loaded. The definitions are writ's own, taken again
// under other names until there are enough.
func disclosure() error {
	var real []*tool.Tool
	for _, family := range []func() ([]*tool.Tool, error){
		files.Tools, func() ([]*tool.Tool, error) { return exec.Tools(exec.Options{}) }, func() ([]*tool.Tool, error) { return admin.Tools(nil) },
	} {
		tools, err := family()
		if err != nil {
			return err
		}
		real = append(real, tools...)
	}
	for _, n := range []int{10, 50, 250} {
		var entries []*disclose.Entry
		for i := range n {
			t := real[i%len(real)]
			name := t.Name
			if i >= len(real) {
				name = fmt.Sprintf("%s_%d", t.Name, i/len(real))
			}
			entries = append(entries, &disclose.Entry{Name: name, Title: t.Title, Description: t.Description, Category: string(t.Category), Tier: t.Tier, Schema: t.Schema, Failures: t.Failures})
		}
		index, err := disclose.NewIndex(entries)
		if err != nil {
			return err
		}
		c := index.Costs(disclose.Defaults(), entries[0], entries[1], entries[2])
		row(fmt.Sprintf("%d tools, tokens of the whole list", n), fmt.Sprint(c.All), fmt.Sprintf("with disclosure %d, and %d for three that were loaded", c.List, c.Load))
	}
	return nil
}
