package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
)

// maxInput is how large a file may be for an approval to bind what it holds.
const maxInput = 16 << 20

// inputs is what a call is about besides its arguments: the files that it names, as they
// are now, and the request that it sends.
func (e *Engine) inputs(c writ.Call) []approval.Input {
	return append(fileInputs(c), e.requested(c)...)
}

// fileInputs reads what the files that a call names hold now. What is approved is the
// call on these files as they are (A18); a directory is bound by its name only.
func fileInputs(c writ.Call) []approval.Input {
	var out []approval.Input
	seen := map[string]bool{}
	for _, t := range c.Targets {
		if t.Kind != writ.TargetPath || t.Problem != "" || seen[t.Path] {
			continue
		}
		seen[t.Path] = true
		out = append(out, inputOf(t.Path))
	}
	return out
}

func inputOf(path string) approval.Input {
	in := approval.Input{Path: path}
	info, err := os.Lstat(path)
	switch {
	case os.IsNotExist(err):
		in.Note = "not there"
	case err != nil:
		in.Note = "cannot be read"
	case info.IsDir():
		in.Note = "a directory; what is in it is not bound"
	case !info.Mode().IsRegular():
		in.Note = "not a regular file; what it holds is not bound"
	case info.Size() > maxInput:
		in.Bytes, in.Note = info.Size(), "larger than 16 MiB; only its size is bound"
	default:
		in.Bytes, in.SHA256, in.Note = sum(path)
	}
	return in
}

// sum hashes a file; what is no regular file by now holds nothing.
func sum(path string) (n int64, digest, note string) {
	f, err := openRegular(path)
	if err != nil {
		return 0, "", "cannot be read"
	}
	defer f.Close()
	h := sha256.New()
	n, err = io.Copy(h, io.LimitReader(f, maxInput+1))
	if err != nil {
		return 0, "", "cannot be read"
	}
	return n, hex.EncodeToString(h.Sum(nil)), ""
}
