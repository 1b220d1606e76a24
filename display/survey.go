package display

import "context"

// survey is what one reading of a text finds out about it, however long it is: what to
// look at twice, and where its pages begin. Nothing of it is made safe for that.
type survey struct {
	kinds kinds
	words words
	signs signs
	shape shape
	pages *Pages // those to be found; nil: none
}

// often is after how many bytes it is asked whether anybody still waits.
const often = 64 << 10

// read goes through the text once. The error is ctx's.
func (v *survey) read(ctx context.Context, text string) error {
	v.words = words{text: text, from: outside}
	v.signs = signs{text: text}
	plain := ascii(text) // which neither words nor signs have anything to say about
	var all *traits
	if !plain {
		all = known()
	}
	r := reader{text: text, marks: noBase}
	ask, err := often, ctx.Err()
	for err == nil && r.at < len(text) {
		if r.at >= ask {
			ask, err = r.at+often, ctx.Err()
		}
		from, marks := r.at, r.marks
		spelled := r.next()
		if spelled {
			v.kinds.see(text[from:r.at], r.char)
		}
		if !plain {
			is := all.of[r.char]
			v.words.see(from, r.char, is)
			v.signs.see(from, r.char, is)
		}
		v.shape.see(r.char)
		if v.pages != nil {
			v.pages.see(from, marks, glyphOf(&r, from, spelled))
		}
	}
	return err
}

// warnings is what to look at twice, once the text was read.
func (v *survey) warnings() []string {
	out := append(v.kinds.end(), v.words.end()...)
	out = append(out, v.signs.end()...)
	return append(out, v.shape.end()...)
}

func textWarnings(s string) []string {
	var v survey
	if err := v.read(context.Background(), s); err != nil {
		panic(err) // that context has no end
	}
	return v.warnings()
}
