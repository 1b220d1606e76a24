package engine

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// keys are the secrets of one store: the seed of the key that signs ledger
// heads, and the key that seals the arguments of pending calls.
type keys struct {
	sign ed25519.PrivateKey
	seal []byte
}

// loadKeys reads the keys, making them the first time.
func loadKeys(dir string) (keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return keys{}, fmt.Errorf("make the key directory: %w", err)
	}
	seed, err := loadKey(filepath.Join(dir, "ledger.key"))
	if err != nil {
		return keys{}, err
	}
	seal, err := loadKey(filepath.Join(dir, "seal.key"))
	if err != nil {
		return keys{}, err
	}
	return keys{ed25519.NewKeyFromSeed(seed), seal}, nil
}

const keyBytes = 32

func loadKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("%s is damaged: it has %d bytes instead of %d; restore it from a backup", path, len(key), keyBytes)
	}
	return key, nil
}

func makeKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	rand.Read(key)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	_, err = f.Write(key)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// of is a key for one purpose, made from that which seals.
func (k keys) of(purpose string) []byte {
	mac := hmac.New(sha256.New, k.seal)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}
