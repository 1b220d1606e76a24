package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/display"
)

// writeRequest writes everything that the digest binds. Nothing is cut, and nothing
// in it can hide, reorder itself or pass for a line of ours: arguments stand behind a
// margin. end is when and why it ended, where nobody answered it.
func writeRequest(out io.Writer, r client.Approval, end string) error {
	fmt.Fprintf(out, "request   %s (%s)\nagent     %s\ntool      %s\nasked     %s", r.ID, r.State, OneLine(r.Agent), OneLine(r.Tool), Ago(r.Requested))
	switch at := expires(r.State, r.Expires); {
	case r.State == "expired":
		fmt.Fprintf(out, ", expired %s", at)
	case at != "-":
		fmt.Fprintf(out, ", expires %s", at)
	}
	fmt.Fprintln(out)
	if end != "" {
		fmt.Fprintf(out, "ended     %s\n", end)
	}
	danger := ""
	if r.Dangerous {
		danger = ", dangerous"
	}
	if r.By != "" {
		fmt.Fprintf(out, "decided   by %s %s %s\n", OneLine(r.By), Ago(r.Decided), OneLine(r.Reason))
	}
	if r.Blocked != "" {
		fmt.Fprintf(out, "blocked   it would not run now, so it cannot be approved yet: %s\n", OneLine(r.Blocked))
	}
	writeAnswers(out, r)
	s := r.Shown
	if s == nil {
		fmt.Fprintf(out, "class     %s, risk %s%s\n(arguments are shown to people, while a request is open)\n", r.Class, r.Risk, danger)
	} else if err := writeShown(out, r, s, danger); err != nil {
		return err
	}
	fmt.Fprintf(out, "digest    %s\n", r.Digest)
	return nil
}

func writeAnswers(out io.Writer, r client.Approval) {
	for _, v := range r.Votes {
		fmt.Fprintf(out, "answer    %s: %s, %s\n", OneLine(v.Person), v.Decision, Ago(v.At))
	}
	if r.Quorum > 1 {
		fmt.Fprintf(out, "takes     %d different people\n", r.Quorum)
	}
	if r.NotBy != "" {
		fmt.Fprintf(out, "four eyes not %s, for whom the agent acts\n", OneLine(r.NotBy))
	}
	if r.Needs != "" {
		fmt.Fprintf(out, "put to    people with the role %s\n", r.Needs)
	}
	if r.EditOf != "" {
		fmt.Fprintf(out, "edited    from %s\n", r.EditOf)
	}
	if r.ReplacedBy != "" {
		fmt.Fprintf(out, "edited    into %s\n", r.ReplacedBy)
	}
}

func writeShown(out io.Writer, r client.Approval, s *client.Shown, danger string) error {
	if len(s.Chain) > 1 {
		fmt.Fprintf(out, "chain     %s\n", OneLine(strings.Join(s.Chain, " < ")))
	}
	if s.Person != "" {
		fmt.Fprintf(out, "acts for  %s\n", OneLine(s.Person))
	}
	fmt.Fprintf(out, "action    %s, risk %s, class %s%s\ndirectory %s\n\narguments (%d bytes)\n", s.Action, r.Risk, r.Class, danger, OneLine(s.Dir), len(s.Args))
	if err := writeArguments(out, s.Args); err != nil {
		return err
	}
	if s.Original != nil {
		fmt.Fprintf(out, "\nthe agent asked for (%d bytes)\n", len(s.Original))
		if err := writeArguments(out, s.Original); err != nil {
			return err
		}
	}
	if len(s.Resolved)+len(s.Inputs) > 0 {
		fmt.Fprintln(out, "\nwhat they name")
	}
	for _, n := range s.Resolved {
		fmt.Fprintf(out, "  %s is %s\n", OneLine(n.Argument), OneLine(n.Is))
		for _, w := range display.Lookalikes(n.Is) {
			fmt.Fprintf(out, "  ! %s\n", w)
		}
	}
	for _, in := range s.Inputs {
		what := fmt.Sprintf("%d bytes, sha256 %s", in.Bytes, in.SHA256)
		if in.SHA256 == "" {
			what = in.Note
		}
		fmt.Fprintf(out, "  %s: %s\n", OneLine(in.Path), what)
	}
	fmt.Fprintln(out, "\nwhy it asks")
	showReasons(out, s.Reasons)
	fmt.Fprintln(out, "\nwhat it can reach")
	showReach(out, s.Confine)
	if len(r.LedTo) > 0 {
		fmt.Fprintln(out, "\nwhat led here (newest first)")
		for _, i := range r.LedTo {
			name := cmp.Or(OneLine(i.Tool), "(no such tool)") // what the agent called it is not written down
			fmt.Fprintf(out, "  %s  %s  %s  %s\n", Ago(i.Requested), name, i.Status, i.ID)
		}
	}
	fmt.Fprintln(out)
	return nil
}

func writeArguments(out io.Writer, args []byte) error {
	items, err := display.Arguments(args)
	if err != nil {
		return err
	}
	for _, it := range items {
		size := ""
		if it.Lines > 1 || it.Bytes > 60 {
			size = fmt.Sprintf(" (%d bytes, %d lines)", it.Bytes, it.Lines)
		}
		if it.Lines == 1 {
			fmt.Fprintf(out, "  %s%s = %s\n", it.Pointer, size, it.Text)
		} else {
			fmt.Fprintf(out, "  %s%s =\n    │ %s\n", it.Pointer, size, strings.ReplaceAll(it.Text, "\n", "\n    │ "))
		}
		for _, w := range it.Warnings {
			fmt.Fprintf(out, "  ! %s\n", w)
		}
	}
	return nil
}
