package display

import (
	"strings"
	"testing"
)

// long is texts of the size of the largest arguments, made to be dear to look at, as they
// are written in JSON.
func long() map[string][]byte {
	out := map[string][]byte{}
	for name, s := range map[string]string{
		"reordered": "\u202e", "plain": "plain text, of lines.\\n", "mixed words": "раypal∕com ", "false signs": "a∕b⁄c․d", "one word": "раypal", "tags": "\U000e0041",
	} {
		out[name] = []byte(`{"text":"` + strings.Repeat(s, 14_700_000/len(s)) + `"}`)
	}
	return out
}

func BenchmarkArguments(b *testing.B) {
	for name, canonical := range long() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Arguments(canonical); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSheet(b *testing.B) {
	for name, canonical := range long() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				err := Values(canonical, func(v Value) error {
					_, err := v.Sheet(b.Context(), 700, 200, 160)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
