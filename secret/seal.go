package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writ-run/writ"
)

// Rows is where sealed values are kept, by name.
type Rows interface {
	Secret(ctx context.Context, name string) (sealed []byte, found bool, err error)
}

// Store is values that are encrypted at rest, in the database.
type Store struct {
	Rows    Rows
	KeyFile string
}

func (s Store) Read(ctx context.Context, r Ref) (Value, error) {
	sealed, found, err := s.Rows.Secret(ctx, r.Name)
	if err != nil {
		return Value{}, err
	}
	if !found {
		return Value{}, missing(r, fmt.Sprintf("there is no such secret; set it: writ secret set %s", r.Name), nil)
	}
	key, err := LoadKey(s.KeyFile)
	if err != nil {
		return Value{}, err
	}
	v, err := key.Open(r.Name, sealed)
	if err != nil {
		return Value{}, missing(r, fmt.Sprintf("it does not open with the key there is; set it again: writ secret set %s", r.Name), err)
	}
	return v, nil
}

// Key seals values with AES-256-GCM. Nonces are drawn anew for each, and a value is
// bound to its name: put under another one it does not open.
type Key struct{ aead cipher.AEAD }

const keyBytes = 32

// MakeKey is LoadKey that makes a key where there is none: what is sealed first has
// nothing to be opened with.
func MakeKey(path string) (*Key, error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if err := writeKey(path); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, unusable(path, err)
		}
	}
	return LoadKey(path)
}

func unusable(path string, err error) error {
	return writ.Fail(writ.StoreUnavailable, fmt.Sprintf("the key of the secrets in the store, %s, cannot be used: %v", path, err), err)
}

// LoadKey reads the key of a file.
func LoadKey(path string) (*Key, error) {
	raw, err := readKey(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &Key{aead}, err
}

func readKey(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if why := exposed(f); why != "" {
		return nil, errors.New(why)
	}
	raw := make([]byte, keyBytes+1)
	if n, _ := f.Read(raw); n != keyBytes {
		return nil, fmt.Errorf("it has not %d bytes; restore it from a backup, or move it away to begin anew without the secrets there are", keyBytes)
	}
	return raw[:keyBytes], nil
}

// writeKey writes a new key whole or not at all: under another name first, and never
// over one that is there.
func writeKey(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".secrets-key-") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	raw := make([]byte, keyBytes)
	rand.Read(raw)
	_, err = tmp.Write(raw)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}

// Seal encrypts a value for the store, under its name.
func (k *Key) Seal(name string, v Value) []byte {
	return k.aead.Seal(nil, nil, []byte(v.Reveal()), bound(name))
}

// Open decrypts what Seal made for the same name.
func (k *Key) Open(name string, sealed []byte) (Value, error) {
	plain, err := k.aead.Open(nil, nil, sealed, bound(name))
	return New(string(plain)), err
}

func bound(name string) []byte { return []byte("writ secret 1\x00" + name) }
