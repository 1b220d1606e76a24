package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/display"
)

// rendered makes what an agent wrote fit for a person to read. That takes time and memory
// in proportion to it, so few do at once; the others wait, unless whoever asked has gone.
func (x *exchange) rendered(render func() (any, error)) (any, error) {
	select {
	case x.rendering <- struct{}{}:
		defer func() { <-x.rendering }()
		return render()
	case <-x.r.Context().Done():
		return nil, unread(x.r.Context().Err())
	}
}

func unread(err error) error {
	return writ.Fail(writ.Cancelled, "nobody waits for the answer any more", err)
}

// How much of a long argument a page has.
const (
	pageRows  = 200
	pageWidth = 160
)

// mostShown bounds what the list of all arguments shows: a value has its pointer and its
// warnings beside it, and there can be a million.
const mostShown = 64 << 20

// wholeApproval is everything of a request, with the beginning of every argument as safe
// text.
func (x *exchange) wholeApproval(r approval.Request) (client.Approval, error) {
	v := approvalView(r)
	if v.Shown == nil {
		return v, nil
	}
	if r.State == "pending" {
		v.Blocked = x.engine.Blocked(r.Tool)
	}
	left := mostShown
	err := display.Values(v.Shown.Args, func(value display.Value) error {
		sheet, err := value.Sheet(x.r.Context(), 1, pageRows, pageWidth)
		if err != nil {
			return err
		}
		if left -= sizeOf(sheet); left < 0 {
			return errTooMuch
		}
		v.Display = append(v.Display, itemView(sheet))
		return nil
	})
	return v, unshown(r.ID, err)
}

var errTooMuch = fmt.Errorf("the arguments are too many to be shown with what there is to warn of (more than %d MiB); reject the call", mostShown>>20)

// sizeOf is about how much memory an item takes.
func sizeOf(s display.Sheet) int {
	size := 128 + len(s.Pointer) + len(s.Text) + len(s.Title)
	for _, w := range s.Warnings {
		size += len(w)
	}
	return size
}

// unshown says why a request cannot be shown, and so not be approved.
func unshown(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unread(err)
	case errors.Is(err, errTooMuch), errors.Is(err, display.ErrTooLong):
		return writ.Fail(writ.TooLarge, fmt.Sprintf("%v: writ invocation cancel %s", err, id), nil)
	}
	return writ.Fail(writ.Internal, err.Error(), err)
}

func itemView(s display.Sheet) client.Item {
	return client.Item{
		Pointer: s.Pointer, Kind: string(s.Kind), Text: s.Text, Bytes: s.Bytes, Lines: s.Lines, Page: s.Page, Pages: s.Pages, Title: s.Title, Warnings: s.Warnings,
	}
}

// showArgument goes through the arguments without showing any but the one.
func showArgument(x *exchange) (any, error) {
	return x.rendered(func() (any, error) {
		r, err := x.engine.Desk().Show(x.r.Context(), x.r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		if r.Shown == nil {
			return nil, writ.Fail(writ.Conflict, "arguments are kept only while a request is open", nil)
		}
		var found *display.Value
		err = display.Values(r.Shown.Args, func(v display.Value) error {
			if v.Pointer == x.query["pointer"] {
				found = &v
			}
			return x.r.Context().Err()
		})
		switch {
		case err != nil:
			return nil, unshown(r.ID, err)
		case found == nil:
			return nil, writ.Fail(writ.NotFound, "the request has no such argument; GET it to see its pointers", nil)
		}
		sheet, err := found.Sheet(x.r.Context(), int(x.number("page", 1)), pageRows, pageWidth)
		return itemView(sheet), unshown(r.ID, err)
	})
}
