package person

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/writ-run/writ"
)

const right = "correct horse battery"

// stored is one hash for all tests: each costs 64 MiB and a tenth of a second.
var stored = sync.OnceValue(func() string {
	h, err := Hash(right)
	if err != nil {
		panic(err)
	}
	return h
})

// cheap is a hash of the same passphrase at the least cost, for tests of what
// stands around the hashing.
func cheap() string {
	salt := make([]byte, saltBytes)
	return hash{1, 8, 1, salt, derive(right, salt, 1, 8, 1)}.String()
}

// check is Check for tests that do not count.
func check(c *Checker, name, stored, passphrase string) error {
	_, err := c.Check(name, stored, passphrase)
	return err
}

func TestHash(t *testing.T) {
	if !regexp.MustCompile(`^\$argon2id\$v=19\$m=65536,t=3,p=2\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(stored()) {
		t.Errorf("the form is %s", stored())
	}
	if strings.Contains(stored(), right) {
		t.Error("the passphrase is in it")
	}
	if again, err := Hash(right); err != nil || again == stored() {
		t.Errorf("two hashes of one passphrase are the same: %v", err)
	}
	if !matches(stored(), right) || matches(stored(), right+" ") || matches(stored(), "") {
		t.Error("it does not tell passphrases apart")
	}
	// By the library itself, without our parser.
	parts := strings.Split(stored(), "$")
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		t.Fatal(err)
	}
	if got := base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte(right), salt, 3, 64<<10, 2, 32)); got != parts[5] {
		t.Error("it is not argon2id of the passphrase")
	}
}

func TestHashRefuses(t *testing.T) {
	for name, pass := range map[string]string{"empty": "", "short": "1234567", "few characters of many bytes": "ééééééé", "long": strings.Repeat("x", 1025)} {
		if _, err := Hash(pass); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, pass := range map[string]string{"eight": "12345678", "longest": strings.Repeat("x", 1024)} {
		if h, err := Hash(pass); err != nil || !matches(h, pass) {
			t.Errorf("control, %s: %v", name, err)
		}
	}
}

// TestMalformedHash: what is not exactly what Hash writes matches nothing, and
// costs no more than a guess.
func TestMalformedHash(t *testing.T) {
	good := stored()
	p := strings.Split(good, "$")
	form := func(v, cost, salt, key string) string { return "$argon2id$" + v + "$" + cost + "$" + salt + "$" + key }
	for name, bad := range map[string]string{
		"empty":            "",
		"dollars":          "$$$$$",
		"the passphrase":   right,
		"something before": "x" + good,
		"something after":  good + "$",
		"argon2i":          strings.Replace(good, "argon2id", "argon2i", 1),
		"old version":      strings.Replace(good, "v=19", "v=16", 1),
		"no cost":          form(p[2], "", p[4], p[5]),
		"no passes":        form(p[2], "m=65536,t=0,p=2", p[4], p[5]),
		"no threads":       form(p[2], "m=65536,t=3,p=0", p[4], p[5]),
		"many threads":     form(p[2], "m=65536,t=3,p=300", p[4], p[5]),
		"all the memory":   form(p[2], "m=4294967295,t=3,p=2", p[4], p[5]),
		"a gigabyte":       form(p[2], "m=1048576,t=3,p=2", p[4], p[5]),
		"for ever":         form(p[2], "m=65536,t=4294967295,p=2", p[4], p[5]),
		"negative":         form(p[2], "m=-1,t=3,p=2", p[4], p[5]),
		"cost with a tail": form(p[2], "m=65536,t=3,p=2,x=1", p[4], p[5]),
		"cost with a plus": form(p[2], "m=+65536,t=3,p=2", p[4], p[5]),
		"no salt":          form(p[2], p[3], "", p[5]),
		"no key":           form(p[2], p[3], p[4], ""),
		"half a key":       form(p[2], p[3], p[4], p[5][:20]),
		"a line in it":     form(p[2], p[3], p[4][:5]+"\n"+p[4][5:], p[5]),
		"not base64":       form(p[2], p[3], p[4], strings.Repeat("!", 43)),
		"invalid UTF-8":    "$argon2id$\xff$\xff$\xff$\xff",
	} {
		if _, ok := parse(bad); ok {
			t.Errorf("%s: is taken for a hash", name)
		}
	}
	// Whatever is no hash is checked against one of zeros, which must not match.
	zeros := form(p[2], p[3], strings.Repeat("A", 22), strings.Repeat("A", 43))
	if matches("", right) || matches("$argon2id$broken", "") || matches(zeros, right) {
		t.Error("nothing matches")
	}
	if h, ok := parse(good); !ok || h.String() != good {
		t.Error("control: the good one is not read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$argon2id$v=19$m=65536,t=3,p=2$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if h, ok := parse(text); ok && h.String() != text {
			t.Errorf("%q reads as %q", text, h)
		}
	})
}

// work counts how much is derived by watching how long it takes; the median of
// three, in a machine that others use.
func work(f func()) time.Duration {
	var all []time.Duration
	for range 3 {
		began := time.Now()
		f()
		all = append(all, time.Since(began))
	}
	return max(min(all[0], all[1]), min(max(all[0], all[1]), all[2]))
}

// TestSameWork: neither an unknown name, nor a hash that is broken, nor an
// oversized passphrase is told apart by how long the answer takes.
func TestSameWork(t *testing.T) {
	took := func(name, hash, pass string) time.Duration {
		return work(func() {
			if err := check(NewChecker(nil), name, hash, pass); (err == nil) != (pass == right && hash == stored()) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wrong := took("alice", stored(), "wrong passphrase")
	for name, lasted := range map[string]time.Duration{
		"the right one":    took("alice", stored(), right),
		"an unknown name":  took("nobody", "", right),
		"a broken hash":    took("alice", "$argon2id$broken", right),
		"no passphrase":    took("alice", stored(), ""),
		"nobody's nothing": took("nobody", "", ""),
	} {
		if lasted < wrong/3 || lasted > wrong*3 {
			t.Errorf("%s takes %s, a wrong passphrase %s", name, lasted, wrong)
		}
	}
	huge := strings.Repeat("x", 1<<20)
	for _, hash := range []string{stored(), ""} {
		if lasted := took("alice", hash, huge); lasted > wrong/3 {
			t.Errorf("an oversized passphrase against %q takes %s", hash, lasted)
		}
	}
}

// clock is one that the test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// TestLockout runs for somebody and for nobody: both are answered alike.
func TestLockout(t *testing.T) {
	for _, hash := range []string{cheap(), ""} {
		clock := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		c := NewChecker(clock.now)
		says := func(pass, want string) {
			t.Helper()
			err := check(c, "alice", hash, pass)
			if _, msg := writ.Public(err); writ.KindOf(err) != writ.Unauthenticated || !strings.Contains(msg, want) {
				t.Errorf("says %v, want %q", err, want)
			}
		}
		for range 5 {
			says("wrong passphrase", "wrong name or passphrase")
		}
		says(right, "try again in 1s") // the right one does not count either
		clock.at = clock.at.Add(time.Second - 1)
		says("wrong passphrase", "too many")
		clock.at = clock.at.Add(1)
		says("wrong passphrase", "wrong name or passphrase")
		says("wrong passphrase", "try again in 2s")
		clock.at = clock.at.Add(2 * time.Second)
		says("wrong passphrase", "wrong name or passphrase")
		says("wrong passphrase", "try again in 4s")
		clock.at = clock.at.Add(4 * time.Second)
		if err := check(c, "bob", hash, "wrong passphrase"); err == nil || strings.Contains(err.Error(), "too many") {
			t.Errorf("another name is held back: %v", err)
		}
		if hash == "" {
			continue
		}
		if err := check(c, "alice", hash, right); err != nil {
			t.Errorf("control: %v", err)
		}
		says("wrong passphrase", "wrong name or passphrase") // and counting starts anew
		says("wrong passphrase", "wrong name or passphrase")
	}
}

// TestLongestWait: the wait grows to some minutes and no further.
func TestLongestWait(t *testing.T) {
	clock := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c := NewChecker(clock.now)
	c.known["alice"] = tries{failed: 1 << 40}
	if err := check(c, "alice", cheap(), "wrong passphrase"); err == nil {
		t.Fatal("checked")
	}
	if wait := c.known["alice"].until.Sub(clock.at); wait != 512*time.Second {
		t.Errorf("the wait is %s", wait)
	}
}

// TestGuessingAtOnce: a lockout that is looked at before and counted after would
// let a thousand guesses through that are made at the same time.
func TestGuessingAtOnce(t *testing.T) {
	clock := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c := NewChecker(clock.now)
	var wg sync.WaitGroup
	var checked atomic.Int64
	for i := range 40 {
		wg.Go(func() {
			err := check(c, "alice", cheap(), fmt.Sprint("guess number ", i))
			if err == nil {
				t.Error("a guess was right")
			} else if !strings.Contains(err.Error(), "too many") {
				checked.Add(1)
			}
		})
	}
	wg.Wait()
	if checked.Load() != freeTries {
		t.Errorf("%d guesses were checked", checked.Load())
	}
}

// TestFloodOfNames: names that nobody has fill no memory, and do not make room for
// guesses at somebody's.
func TestFloodOfNames(t *testing.T) {
	clock := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c := NewChecker(clock.now)
	for i := range maxUnknown {
		c.unknown[fmt.Sprint("nobody", i)] = tries{failed: 1}
	}
	for range freeTries {
		if err := check(c, "alice", cheap(), "wrong passphrase"); err == nil {
			t.Fatal("checked")
		}
	}
	if err := check(c, "one more", "", "wrong passphrase"); err == nil {
		t.Error("nobody was let in")
	}
	if err := check(c, "alice", cheap(), right); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("after a flood of names guessing is free: %v", err)
	}
	if len(c.unknown) > maxUnknown {
		t.Errorf("%d names are remembered", len(c.unknown))
	}
	if err := check(c, strings.Repeat("x", 1<<20), "", "wrong passphrase"); err == nil || len(c.unknown) > 1 {
		t.Errorf("a megabyte of a name is remembered: %v", err)
	}
}

func TestToken(t *testing.T) {
	token, id, hash := NewToken()
	if !regexp.MustCompile(`^writ_[a-z2-7]{52}$`).MatchString(token) || !regexp.MustCompile(`^tok_[a-z2-7]{10}$`).MatchString(id) {
		t.Errorf("token %s, id %s", token, id)
	}
	if hash != TokenHash(token) || hash == TokenHash(token+" ") || hash == TokenHash(strings.ToUpper(token)) {
		t.Error("the hash is not the token's, or not only its")
	}
	if strings.Contains(token, strings.TrimPrefix(id, "tok_")) || strings.Contains(hex.EncodeToString(hash[:]), token) {
		t.Error("one gives the other away")
	}
	seen := map[string]bool{}
	for range 1000 {
		token, id, _ := NewToken()
		if seen[token] || seen[id] {
			t.Fatal("made twice")
		}
		seen[token], seen[id] = true, true
	}
}
