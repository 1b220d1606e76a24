package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// Rows is where sealed values are kept, by name.
type Rows interface {
	Secret(ctx context.Context, name string) (sealed []byte, found bool, err error)
}

// Store is values that are encrypted at rest, in the database.
type Store struct {
	Rows Rows
	Key  KeyPlace
}

func (s Store) Read(ctx context.Context, r Ref) (Value, error) {
	sealed, found, err := s.Rows.Secret(ctx, r.Name)
	if err != nil {
		return Value{}, err
	}
	if !found {
		return Value{}, missing(r, fmt.Sprintf("there is no such secret; set it: writ secret set %s", r.Name), nil)
	}
	key, err := s.Key.Load(ctx)
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

func newKey(raw []byte) (*Key, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &Key{aead}, err
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
