// Package person holds what tells people and agents apart: passphrases, which
// authenticate people and cannot be read from disk, and bearer tokens, which
// authenticate agents and never people.
package person

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/writ-run/writ"
)

// Cost of one guess at a passphrase (RFC 9106, second recommended choice).
const (
	argonTime    = 3
	argonMemory  = 64 << 10 // KiB
	argonThreads = 2
	saltBytes    = 16
	keyBytes     = 32
)

// Roles are what somebody can be, from the one that decides nothing to the one that
// decides everything.
var Roles = []string{"viewer", "approver", "operator", "admin"}

// MinPassphrase is the least number of characters.
const MinPassphrase = 8

// Bounds on what is checked, in bytes.
const (
	maxPassphrase = 1024
	maxName       = 256
)

// Hash turns a passphrase into its stored form.
func Hash(passphrase string) (string, error) {
	if utf8.RuneCountInString(passphrase) < MinPassphrase {
		return "", writ.Fail(writ.Invalid, fmt.Sprintf("the passphrase is too short; use at least %d characters", MinPassphrase), nil)
	}
	if len(passphrase) > maxPassphrase {
		return "", writ.Fail(writ.Invalid, fmt.Sprintf("the passphrase is longer than %d bytes; use a shorter one", maxPassphrase), nil)
	}
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	h := hash{argonTime, argonMemory, argonThreads, salt, derive(passphrase, salt, argonTime, argonMemory, argonThreads)}
	return h.String(), nil
}

// hashing is one at a time: each guess takes 64 MiB, and many at once would let
// whoever guesses exhaust the machine.
var hashing sync.Mutex

func derive(passphrase string, salt []byte, t, m uint32, p uint8) []byte {
	hashing.Lock()
	defer hashing.Unlock()
	key := argon2.IDKey([]byte(passphrase), salt, t, m, p, keyBytes)
	debug.FreeOSMemory() // an idle daemon does not sit on what a rare check needed
	return key
}

// hash is a stored hash, read.
type hash struct {
	time, memory uint32
	threads      uint8
	salt, key    []byte
}

// parse reads what Hash wrote, and only that: a text that says the same in
// another way was not written here. The bounds are those of one guess that a
// machine can bear, for hashes of later versions.
func parse(stored string) (h hash, ok bool) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 {
		return h, false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil {
		return h, false
	}
	enc := base64.RawStdEncoding
	var err1, err2 error
	h.salt, err1 = enc.DecodeString(parts[4])
	h.key, err2 = enc.DecodeString(parts[5])
	sane := h.memory <= 256<<10 && h.time > 0 && h.time <= 16 && h.threads > 0 && len(h.salt) == saltBytes && len(h.key) == keyBytes
	return h, err1 == nil && err2 == nil && sane && h.String() == stored
}

func (h hash) String() string {
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads, enc.EncodeToString(h.salt), enc.EncodeToString(h.key))
}

// matches reports whether passphrase is the one that was hashed. Whatever stored
// is, also "", it takes as long.
func matches(stored, passphrase string) bool {
	h, ok := parse(stored)
	if !ok {
		h = hash{time: argonTime, memory: argonMemory, threads: argonThreads, salt: make([]byte, saltBytes), key: make([]byte, keyBytes)}
	}
	same := subtle.ConstantTimeCompare(h.key, derive(passphrase, h.salt, h.time, h.memory, h.threads)) == 1
	return same && ok
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
