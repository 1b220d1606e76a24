package engine

import (
	"context"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/secret"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// secrets are the backends of the configuration in force. Nothing is kept between two
// uses of them.
func (e *Engine) secrets() secret.Set {
	cfg := e.at().cfg
	set := secret.Set{
		"env": secret.Env{}, "file": secret.File{}, "keyring": e.keyring, "store": secret.Store{Rows: e.store, Key: e.secretKey()},
		"vault": secret.Vault{}, // which says that there is none
	}
	if v := cfg.File.Secrets.Vault; v != nil {
		set["vault"] = secret.Vault{
			Address: v.Address, Namespace: v.Namespace, Mount: v.Mount, Version: v.KVVersion, Token: v.Token,
			Tokens: secret.Set{"env": secret.Env{}, "file": secret.File{}, "keyring": e.keyring}, Way: func() (secret.Way, error) { return e.to("secrets.vault", v.Address) },
		}
	}
	return set
}

// secretKey is where the key of the secrets in the store is kept.
func (e *Engine) secretKey() secret.KeyPlace {
	cfg := e.at().cfg
	if file := cfg.SecretKeyFile(); file != "" {
		return secret.KeyFile(file)
	}
	return secret.KeyInRing{Ring: e.keyring, Name: cfg.File.Secrets.Store.Key.Name}
}

// Secrets lists the secrets in the store: names, when and by whom each was set.
func (e *Engine) Secrets(ctx context.Context) ([]store.Secret, error) { return e.store.Secrets(ctx) }

// SetSecret keeps a value in the store, sealed, instead of the one before. It takes a
// person who operates: with it agents can use what the value opens. The ledger has the
// name, and nothing that a guess could be held against.
func (e *Engine) SetSecret(ctx context.Context, name string, value secret.Value, cred Credentials) error {
	switch {
	case !secret.ValidName(name):
		return writ.Fail(writ.Invalid, "a secret's name has letters, digits, _ . and -, at most 64, and begins with a letter, a digit or _", nil)
	case value.Empty():
		return writ.Fail(writ.Invalid, "the value is empty; nothing was set", nil)
	case len(value.Reveal()) < secret.MinBytes:
		return writ.Fail(writ.Invalid, fmt.Sprintf("the value has fewer than %d characters, too few to be kept out of answers, so that nothing would use it; nothing was set, use a longer one", secret.MinBytes), nil)
	case len(value.Reveal()) > secret.MaxBytes:
		return writ.Fail(writ.TooLarge, fmt.Sprintf("the value has more than %d KiB; nothing was set", secret.MaxBytes>>10), nil)
	}
	by, err := e.proven(ctx, cred, "operate")
	if err != nil {
		return err
	}
	key, err := e.secretKey().Make(ctx)
	if err != nil {
		return err
	}
	sealed := key.Seal(name, value)
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := still(tx, by, "operate"); err != nil {
			return ledger.Entry{}, err
		}
		return ledger.Entry{Kind: "secret.set", Person: by.Name, Data: []wire.Field{wire.Str("secret", name), wire.Str("factor", "passphrase")}},
			tx.SetSecret(store.Secret{Name: name, Set: e.ledger.Now(), By: by.Name}, sealed)
	})
}

// RemoveSecret forgets a value. It takes nobody's passphrase: it opens nothing.
func (e *Engine) RemoveSecret(ctx context.Context, name string) error {
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.RemoveSecret(name)
		if err == nil && !ok {
			err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no secret %q in the store; 'writ secret list' shows them", name), nil)
		}
		return ledger.Entry{Kind: "secret.removed", Data: []wire.Field{wire.Str("secret", name)}}, err
	})
}

// CheckSecret looks a value up and says about how long it is.
func (e *Engine) CheckSecret(ctx context.Context, text string) (length string, err error) {
	ref, err := secret.ParseRef(text)
	if err != nil {
		return "", writ.Fail(writ.Invalid, err.Error(), nil)
	}
	v, err := e.secrets().Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	return v.Length(), e.ledger.Append(ctx, ledger.Entry{Kind: "secret.checked", Data: []wire.Field{wire.Str("reference", ref.String())}})
}
