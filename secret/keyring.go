package secret

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// Keyring is the keyring of the operating system, of the user whom the daemon runs as: the
// Secret Service of the session on Linux, the keychain of macOS, the credentials of
// Windows. What is in it under the service "writ" and a name is keyring:NAME. It is safe
// for concurrent use; one question is asked at a time.
type Keyring struct{ asking chan struct{} }

// NewKeyring makes one. It asks nobody anything yet.
func NewKeyring() *Keyring { return &Keyring{make(chan struct{}, 1)} }

// Whom the items of a keyring are for, and how long it may take to answer. A keyring that
// is waited for could be waiting for somebody to type a password.
const (
	keyringService = "writ"
	keyringWithin  = 5 * time.Second
)

var errSilent = errors.New("the keyring does not answer; see whether it waits for somebody to unlock it, and whether the session of the daemon's user goes on")

func (k *Keyring) Read(ctx context.Context, r Ref) (Value, error) {
	text, err := k.get(ctx, r.Name)
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return Value{}, missing(r, "the keyring has no such item; add it: "+adding(r.Name), nil)
	case err != nil:
		return Value{}, missing(r, err.Error(), err)
	}
	return New(text), nil
}

func (k *Keyring) get(ctx context.Context, name string) (text string, err error) {
	err = k.ask(ctx, func() (err error) {
		text, err = keyring.Get(keyringService, name)
		return err
	})
	if err != nil {
		return "", err // text may still be written to
	}
	return text, nil
}

func (k *Keyring) set(ctx context.Context, name, text string) error {
	return k.ask(ctx, func() error { return keyring.Set(keyringService, name, text) })
}

// ask does something with a keyring that is open. What it asks knows no end, so it is left
// to itself when it takes too long; until then nothing else is asked, and there is one such
// at most.
func (k *Keyring) ask(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, keyringWithin)
	defer cancel()
	select {
	case k.asking <- struct{}{}:
	case <-ctx.Done():
		return errSilent
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-k.asking }()
		defer func() { // the library believes what a service answers
			if p := recover(); p != nil {
				done <- fmt.Errorf("the keyring answers as none does; see which program it is")
			}
		}()
		err := openable()
		if err == nil {
			err = plainly(do())
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errSilent
	}
}

// plainly keeps what a keyring says to whoever reads the cause: it may be anything.
func plainly(err error) error {
	if err == nil || errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return fault{"the keyring refuses it; see whether it is unlocked and takes items", err}
}

// fault is an error with words of ours.
type fault struct {
	why   string
	cause error
}

func (f fault) Error() string { return f.why }
func (f fault) Unwrap() error { return f.cause }

// adding is how somebody puts an item into the keyring of this system.
func adding(name string) string {
	switch runtime.GOOS {
	case "darwin":
		return fmt.Sprintf("security add-generic-password -s %s -a %s -w", keyringService, name)
	case "windows":
		return fmt.Sprintf("cmdkey /generic:%s:%s /user:%s /pass", keyringService, name, name)
	}
	return fmt.Sprintf("secret-tool store --label=%s service %s username %s", name, keyringService, name)
}
