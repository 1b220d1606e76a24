package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// shortest is the least that a key has: what is shorter can be guessed.
const shortest = 16

// Key reads a secret as Standard Webhooks has it: whsec_ and base64, or else the bytes as
// they are, without the newline that editors add.
func Key(secret []byte) ([]byte, error) {
	text := strings.TrimRight(string(secret), "\r\n")
	key := []byte(text)
	if rest, ok := strings.CutPrefix(text, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(rest); err != nil {
			return nil, errors.New("what follows whsec_ is not base64; make one with: echo whsec_$(openssl rand -base64 32)")
		}
	}
	if len(key) < shortest {
		return nil, errors.New("the secret has fewer than 16 bytes; make one with: echo whsec_$(openssl rand -base64 32)")
	}
	return key, nil
}

// sign is the value of webhook-signature.
func sign(key []byte, id string, at int64, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + strconv.FormatInt(at, 10) + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
