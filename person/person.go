// Package person holds what tells people and agents apart: passphrases, which
// authenticate people and cannot be read from disk, and bearer tokens, which
// authenticate agents and never people.
package person

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/writ-run/writ"
)

// Cost of one guess at a passphrase (RFC 9106, second recommended choice).
const (
	argonTime    = 3
	argonMemory  = 64 << 10 // KiB
	argonThreads = 2
)

// MinPassphrase is the least number of characters.
const MinPassphrase = 8

// Hash turns a passphrase into its stored form.
func Hash(passphrase string) (string, error) {
	if utf8.RuneCountInString(passphrase) < MinPassphrase {
		return "", writ.Fail(writ.Invalid, fmt.Sprintf("the passphrase is too short; use at least %d characters", MinPassphrase), nil)
	}
	if len(passphrase) > 1024 {
		return "", writ.Fail(writ.Invalid, "the passphrase is longer than 1024 bytes", nil)
	}
	salt := make([]byte, 16)
	rand.Read(salt)
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		enc.EncodeToString(salt), enc.EncodeToString(derive(passphrase, salt, argonTime, argonMemory, argonThreads))), nil
}

// hashing is one at a time: each guess takes 64 MiB, and many at once would let
// whoever guesses exhaust the machine.
var hashing sync.Mutex

func derive(passphrase string, salt []byte, t, m uint32, p uint8) []byte {
	hashing.Lock()
	defer hashing.Unlock()
	key := argon2.IDKey([]byte(passphrase), salt, t, m, p, 32)
	debug.FreeOSMemory() // an idle daemon does not sit on what a rare check needed
	return key
}

// matches reports whether passphrase is the one that was hashed.
func matches(stored, passphrase string) bool {
	parts := strings.Split(stored, "$")
	var v int
	var m, t uint32
	var p uint8
	if len(parts) != 6 || parts[1] != "argon2id" || len(passphrase) > 1024 {
		return false
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &v, &m, &t, &p); err != nil || v != argon2.Version || m > 1<<20 || t == 0 || t > 16 || p == 0 {
		return false
	}
	enc := base64.RawStdEncoding
	salt, err1 := enc.DecodeString(parts[4])
	want, err2 := enc.DecodeString(parts[5])
	if errors.Join(err1, err2) != nil || len(want) != 32 {
		return false
	}
	return subtle.ConstantTimeCompare(want, derive(passphrase, salt, t, m, p)) == 1
}

// Checker checks passphrases and slows guessing down. Safe for concurrent use.
type Checker struct {
	now func() time.Time

	mu    sync.Mutex
	tries map[string]tries
}

type tries struct {
	failed int
	until  time.Time // no attempt counts before
}

// NewChecker uses the clock now; nil means time.Now.
func NewChecker(now func() time.Time) *Checker {
	if now == nil {
		now = time.Now
	}
	return &Checker{now: now, tries: map[string]tries{}}
}

// freeTries is how many wrong passphrases cost no waiting.
const freeTries = 5

// Check returns nil when passphrase is name's. stored is "" for somebody who does
// not exist, which takes as long and says the same.
func (c *Checker) Check(name, stored, passphrase string) error {
	c.mu.Lock()
	wait := c.tries[name].until.Sub(c.now())
	c.mu.Unlock()
	if wait > 0 {
		return writ.Fail(writ.Unauthenticated, fmt.Sprintf("too many wrong passphrases; try again in %s", wait.Round(time.Second)), nil)
	}
	ok := matches(stored, passphrase)
	if stored == "" {
		derive(passphrase, make([]byte, 16), argonTime, argonMemory, argonThreads)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		delete(c.tries, name)
		return nil
	}
	t := c.tries[name]
	if t.failed++; t.failed >= freeTries {
		t.until = c.now().Add(time.Second << min(t.failed-freeTries, 9))
	}
	if len(c.tries) < 1000 || c.tries[name].failed > 0 {
		c.tries[name] = t
	}
	return writ.Fail(writ.Unauthenticated, "wrong name or passphrase", nil)
}

// tokenPrefix makes a leaked token easy to recognise.
const tokenPrefix = "writ_"

// NewToken makes a bearer token, its public id, and the hash to keep.
func NewToken() (token, id string, hash [32]byte) {
	token = tokenPrefix + strings.ToLower(rand.Text()+rand.Text())
	hash = TokenHash(token)
	return token, "tok_" + strings.ToLower(rand.Text()[:10]), hash
}

// TokenHash is what a token is looked up by. A token has 256 random bits, so one
// fast hash is enough.
func TokenHash(token string) [32]byte { return sha256.Sum256([]byte(token)) }
