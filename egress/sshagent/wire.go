package sshagent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What is asked and said (draft-ietf-sshm-ssh-agent), as far as it is known here.
const (
	failure    = 5
	success    = 6
	askKeys    = 11
	saysKeys   = 12
	askSign    = 13
	saysSigned = 14
	askBind    = 27 // an extension
	userAuth   = 50 // SSH_MSG_USERAUTH_REQUEST, in what is signed

	bindName = "session-bind@openssh.com"
)

// maxRequest is longer than any signing in, with the longest keys there are.
const maxRequest = 64 << 10

// errLength is said of what is no request to an agent.
var errLength = errors.New("the program says something of a length that no request to an agent has")

// read takes one request, which has a byte at least.
func read(from io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || n > maxRequest {
		return nil, errLength
	}
	b := make([]byte, n)
	_, err := io.ReadFull(from, b)
	return b, err
}

func write(to io.Writer, answer []byte) error {
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	return err
}

// asked is what a request that is not done would have had done.
func asked(kind byte) string {
	switch kind {
	case 17, 25, 20, 26:
		return "to take a key"
	case 18, 19, 21:
		return "to forget a key"
	case 22:
		return "to be locked"
	case 23:
		return "to be unlocked"
	}
	return fmt.Sprintf("for something else (%d)", kind)
}
