package display

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// made is how many bytes of memory something takes, all in all.
func made(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// One page of a long value takes less memory than the value itself.
func TestSheetTakesLittle(t *testing.T) {
	const size = 2 << 20
	known() // which is made once
	for name, piece := range map[string]string{
		"reordered": "\u202e", "newlines": "\n", "plain": "a b", "tags": "\U000e0041", "different": everyHidden(), "mixed": "раypal∕com ", "one mixed word": "рay", "tabs": "\t", "returns": " \r",
	} {
		v := Value{Kind: String, text: strings.Repeat(piece, size/len(piece))}
		for _, page := range []int{1, 40, 1 << 20} {
			var s Sheet
			var err error
			took := made(func() { s, err = v.Sheet(t.Context(), page, 200, 160) })
			if err != nil || s.Pages < 40 || s.Page != min(page, s.Pages) || s.Bytes != len(v.text) || len(s.Text) == 0 {
				t.Errorf("%s: page %d of %d, %d bytes: %v", name, s.Page, s.Pages, s.Bytes, err)
			}
			if took > size {
				t.Errorf("%s: page %d took %d bytes", name, page, took)
			}
		}
		// The control: that is far less than the value takes made safe.
		if took := made(func() { Paginate(Visible(v.text+"\u202e"), 200, 160) }); took < size {
			t.Errorf("%s: the whole took %d bytes", name, took)
		}
	}
}

// everyHidden is each character of the planes for private use.
func everyHidden() string {
	var b strings.Builder
	for r := rune(0xF0000); r < 0xFFFFE; r++ {
		b.WriteRune(r)
	}
	return b.String()
}

// leaving is a context that ends when it was asked about so many times.
type leaving struct {
	context.Context
	left *int
}

func (l leaving) Err() error {
	if *l.left--; *l.left < 0 {
		return context.Canceled
	}
	return nil
}

// Whoever went away is not read for any further.
func TestSheetEndsWithItsContext(t *testing.T) {
	v := Value{Kind: String, text: strings.Repeat("\u202e", often)} // which is read in three parts
	for left, want := range map[int]error{0: context.Canceled, 1: context.Canceled, 2: context.Canceled, 3: nil} {
		asked := left
		s, err := v.Sheet(leaving{t.Context(), &asked}, 1, 200, 160)
		if !errors.Is(err, want) || (err == nil) != (s.Text != "") {
			t.Errorf("after %d looks: %v, %q", left, err, s.Title)
		}
		if want != nil && asked != -1 {
			t.Errorf("after %d looks it was looked %d times more", left, -asked)
		}
	}
}
