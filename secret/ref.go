package secret

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Ref says where a value is kept. The zero Ref names none.
type Ref struct {
	Backend string // env, file, keyring, store or vault
	Name    string // a variable, an absolute path, a name in the keyring or the store, a path in the vault
	Field   string // of vault: which value of the secret there
}

// Backends are the kinds of places there are.
var Backends = []string{"env", "file", "keyring", "store", "vault"}

// Forms is how references are written.
const Forms = "env:NAME, file:/abs/path, keyring:NAME, store:NAME or vault:PATH#FIELD"

// ParseRef reads a reference. What it refuses it does not repeat: that may be a value
// somebody wrote where the reference belongs.
func ParseRef(s string) (Ref, error) {
	backend, name, ok := strings.Cut(s, ":")
	if !ok || !slices.Contains(Backends, backend) {
		return Ref{}, errors.New("this is not where a secret is kept, and a secret itself does not belong here; write " + Forms)
	}
	r := Ref{Backend: backend, Name: name}
	if backend == "vault" {
		r.Name, r.Field, _ = strings.Cut(name, "#")
	}
	if why := r.fault(); why != "" {
		return Ref{}, fmt.Errorf("the reference to %s %s; write %s", backend, why, Forms)
	}
	return r, nil
}

// fault is what is wrong with a reference, or "".
func (r Ref) fault() string {
	switch r.Backend {
	case "env":
		if !ValidVariable(r.Name) {
			return "names no variable"
		}
	case "file":
		if !strings.HasPrefix(r.Name, "/") || path.Clean(r.Name) != r.Name || strings.ContainsRune(r.Name, 0) || r.Name == "/" {
			return "names no absolute, clean path"
		}
	case "keyring", "store":
		if !ValidName(r.Name) {
			return "names nothing that can be in it: letters, digits, _ . and -, at most 64"
		}
	case "vault":
		if !vaultPath(r.Name) {
			return "names no path in the vault: segments of letters, digits, _ . and -, between /"
		}
		if r.Field == "" || strings.ContainsFunc(r.Field, func(c rune) bool { return c < ' ' || c > '~' }) || len(r.Field) > 128 {
			return "names no field of the secret there"
		}
	}
	return ""
}

// ValidName reports whether a secret in the store can have the name.
func ValidName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '.' && s[0] != '-' && strings.Trim(s, letters+digits+"_.-") == ""
}

// ValidVariable reports whether a variable of the environment can have the name.
func ValidVariable(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, letters+digits+"_") == "" && (s[0] < '0' || s[0] > '9')
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// vaultPath takes what goes into a URL as it is: no dot segments, nothing encoded.
func vaultPath(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || strings.Trim(part, ".") == "" || strings.Trim(part, letters+digits+"_.-") != "" {
			return false
		}
	}
	return len(s) <= 512
}

// String is the reference as it is written. It is no secret.
func (r Ref) String() string {
	switch {
	case r == Ref{}:
		return ""
	case r.Field != "":
		return r.Backend + ":" + r.Name + "#" + r.Field
	}
	return r.Backend + ":" + r.Name
}

func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *Ref) UnmarshalText(b []byte) error {
	v, err := ParseRef(string(b))
	if err == nil {
		*r = v
	}
	return err
}
