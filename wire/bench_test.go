package wire

import (
	"fmt"
	"strings"
	"testing"
)

// small is some 200 bytes of arguments as an agent sends them.
const small = `{"path":"/srv/app/config/settings.yaml","content":"name: demo\nport: 8080\nlevel: info\nowner: \"ops\"\n","mode":420,"create_parents":true,"encoding":"utf-8","tags":["config","demo"],"limits":{"bytes":65536}}`

// large is 1 MiB of such objects with growing numbers in them.
func large() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, ",%s", strings.Replace(small, "65536", fmt.Sprint(i), 1))
	}
	return "[" + b.String()[1:] + "]"
}

func BenchmarkCanonical(b *testing.B) {
	for _, in := range []struct{ name, raw string }{{"200B", small}, {"1MiB", large()}} {
		sorted, err := Canonical([]byte(in.raw))
		if err != nil {
			b.Fatal(err)
		}
		for _, form := range []struct{ name, raw string }{{"unsorted", in.raw}, {"canonical", sorted}} {
			b.Run(in.name+"/"+form.name, func(b *testing.B) {
				raw := []byte(form.raw)
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Canonical(raw); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"files_write","arguments":` + small + `}}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		var env envelope
		if err := Decode(raw, &env); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Digest(small)
	}
}

func BenchmarkAppendObject(b *testing.B) {
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		dst, err = AppendObject(dst[:0], Str("tool", "files_write"), Str("agent", "coder"), Int("seq", 12345),
			Bool("error", false), Raw("args", `{"path":"/srv/app"}`), Str("at", "2026-01-02T03:04:05Z"))
		if err != nil {
			b.Fatal(err)
		}
	}
}
