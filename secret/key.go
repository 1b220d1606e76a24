package secret

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zalando/go-keyring"

	"github.com/writ-run/writ"
)

// KeyPlace is where the key of the store is kept. Make is Load that makes a key where
// there is none: what is sealed first has nothing to be opened with.
type KeyPlace interface {
	Load(context.Context) (*Key, error)
	Make(context.Context) (*Key, error)
}

const keyBytes = 32

func unusable(where string, err error) error {
	return writ.Fail(writ.StoreUnavailable, fmt.Sprintf("the key of the secrets in the store, %s, cannot be used: %v", where, err), err)
}

// KeyFile is a file that has the key, by its path.
type KeyFile string

func (f KeyFile) Make(ctx context.Context) (*Key, error) {
	if _, err := os.Lstat(string(f)); errors.Is(err, os.ErrNotExist) {
		if err := f.write(); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, unusable(string(f), err)
		}
	}
	return f.Load(ctx)
}

func (f KeyFile) Load(context.Context) (*Key, error) {
	raw, err := f.read()
	if err != nil {
		return nil, unusable(string(f), err)
	}
	return newKey(raw)
}

func (f KeyFile) read() ([]byte, error) {
	file, err := openPlain(string(f))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if why := exposed(file); why != "" {
		return nil, errors.New(why)
	}
	raw := make([]byte, keyBytes+1)
	if n, _ := file.Read(raw); n != keyBytes {
		return nil, fmt.Errorf("it has not %d bytes; restore it from a backup, or move it away to begin anew without the secrets there are", keyBytes)
	}
	return raw[:keyBytes], nil
}

// write writes a new key whole or not at all: under another name first, and never over one
// that is there.
func (f KeyFile) write() error {
	tmp, err := os.CreateTemp(filepath.Dir(string(f)), ".secrets-key-") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(drawn())
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), string(f))
}

func drawn() []byte {
	raw := make([]byte, keyBytes)
	rand.Read(raw)
	return raw
}

// KeyInRing is an item of a keyring that has the key, in base64.
type KeyInRing struct {
	Ring *Keyring
	Name string
}

func (k KeyInRing) String() string { return Ref{Backend: "keyring", Name: k.Name}.String() }

func (k KeyInRing) Make(ctx context.Context) (*Key, error) {
	_, err := k.Ring.get(ctx, k.Name)
	if errors.Is(err, keyring.ErrNotFound) { // and for no other reason: one that is locked has a key
		err = k.Ring.set(ctx, k.Name, base64.StdEncoding.EncodeToString(drawn()))
	}
	if err != nil {
		return nil, unusable(k.String(), err)
	}
	return k.Load(ctx)
}

func (k KeyInRing) Load(ctx context.Context) (*Key, error) {
	text, err := k.Ring.get(ctx, k.Name)
	if errors.Is(err, keyring.ErrNotFound) {
		err = errors.New("the keyring has no such item; restore it from a backup, or set the secrets again, which makes a new one")
	}
	if err != nil {
		return nil, unusable(k.String(), err)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != keyBytes {
		return nil, unusable(k.String(), fmt.Errorf("it is not the base64 of %d bytes; restore it from a backup, or remove the item to begin anew without the secrets there are", keyBytes))
	}
	return newKey(raw)
}
