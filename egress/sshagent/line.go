package sshagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/writ-run/writ/egress"
)

// line is one program that talks to the agent.
type line struct {
	agent   *Agent
	over    bool     // it showed somebody whom the agent is not for: there is nothing for it
	bound   []byte   // the key of the server that it showed; nil: none yet
	session []byte   // with which it has this session there
	logins  []*login // of that server
	keys    map[*login][]ssh.Signer
}

// answer does what a request asks for, or says that it does not.
func (l *line) answer(ctx context.Context, request []byte) []byte {
	kind, body := request[0], request[1:]
	var out []byte
	var at *login
	var err error
	switch kind {
	case askKeys:
		if l.over {
			return []byte{failure}
		}
		return l.list(ctx)
	case askBind:
		out, err = l.bind(body)
		l.over = l.over || err != nil
	case askSign:
		out, at, err = l.sign(ctx, body)
	default:
		err = fmt.Errorf("the agent signs in at servers and does nothing else; it was asked %s", asked(kind))
	}
	if err != nil {
		l.agent.tell(at, egress.NotSigned, err.Error())
		return []byte{failure}
	}
	return out
}

// list are the public keys: of the server that was shown, or of all.
func (l *line) list(ctx context.Context) []byte {
	logins := l.logins
	if l.bound == nil {
		for i := range l.agent.logins {
			logins = append(logins, &l.agent.logins[i])
		}
	}
	n, keys := uint32(0), []byte(nil)
	for _, at := range logins {
		for _, k := range l.signers(ctx, at) {
			n++
			keys = append(keys, ssh.Marshal(struct{ Key, Comment string }{string(k.PublicKey().Marshal()), at.User + "@" + at.Address})...)
		}
	}
	return append(ssh.Marshal(struct {
		Kind byte
		N    uint32
	}{saysKeys, n}), keys...)
}

// signers are the keys of a login, looked up once for a program.
func (l *line) signers(ctx context.Context, at *login) []ssh.Signer {
	if keys, ok := l.keys[at]; ok {
		return keys
	}
	l.agent.use() // where it is looked up is somebody's as well
	keys, err := at.Keys(ctx)
	if err != nil {
		l.agent.tell(at, egress.NotSigned, "the key cannot be used: "+err.Error())
		return nil
	}
	if l.keys == nil {
		l.keys = map[*login][]ssh.Signer{}
	}
	l.keys[at] = keys
	return keys
}

// bind notes whom the program talks to, where that server itself says so.
func (l *line) bind(body []byte) ([]byte, error) {
	var m struct {
		Name      string
		Key       []byte
		Session   []byte
		Signature []byte
		Forwards  bool
	}
	if err := ssh.Unmarshal(body, &m); err != nil || m.Name != bindName {
		return nil, errors.New("the agent knows no extension but " + bindName)
	}
	if l.bound != nil || l.over {
		return nil, errors.New("the program showed a server already; it connects anew for another")
	}
	if m.Forwards {
		return nil, errors.New("the agent is for programs of the box; it is not forwarded")
	}
	key, err := ssh.ParsePublicKey(m.Key)
	var logins []*login
	if err == nil {
		logins = l.agent.at(key)
	}
	if len(logins) == 0 {
		return nil, errors.New("the program talks to a server whose key is not one of those that are known of " + l.agent.names())
	}
	var s ssh.Signature
	if ssh.Unmarshal(m.Signature, &s) != nil || s.Format == ssh.KeyAlgoRSA || len(m.Session) == 0 || key.Verify(m.Session, &s) != nil {
		return nil, fmt.Errorf("that the program talks to %s is not signed by that server", logins[0].Address)
	}
	if !l.agent.first(m.Session) {
		return nil, fmt.Errorf("the session with %s was shown before, and is not the program's own", logins[0].Address)
	}
	l.bound, l.session, l.logins = bytes.Clone(m.Key), bytes.Clone(m.Session), logins
	return []byte{success}, nil
}

// sign signs that the program is the user of the session that it showed.
func (l *line) sign(ctx context.Context, body []byte) ([]byte, *login, error) {
	var m struct {
		Key, Data []byte
		Flags     uint32
	}
	if err := ssh.Unmarshal(body, &m); err != nil {
		return nil, nil, errors.New("the program asks for a signature as none is asked for")
	}
	if l.over {
		return nil, nil, errors.New("the program showed somebody whom the agent is not for")
	}
	if l.bound == nil {
		return nil, nil, errors.New("it signs for signing in and nothing else, such as files; a program that signs in shows first whom it talks to, as OpenSSH does since 8.9")
	}
	user, algorithm, err := l.wants(m.Key, m.Data)
	if err != nil {
		return nil, l.logins[0], err
	}
	for _, at := range l.logins {
		if at.User != user {
			continue
		}
		for _, k := range l.signers(ctx, at) {
			if !bytes.Equal(k.PublicKey().Marshal(), m.Key) {
				continue
			}
			signed, err := signAs(k, algorithm, m.Data)
			if err != nil {
				return nil, at, err
			}
			l.agent.tell(at, egress.Allowed, fmt.Sprintf("signed in as %s with the key %s", user, ssh.FingerprintSHA256(bare(k.PublicKey()))))
			return ssh.Marshal(struct {
				Kind      byte
				Signature []byte
			}{saysSigned, ssh.Marshal(signed)}), at, nil
		}
	}
	return nil, l.logins[0], fmt.Errorf("the program wants to be %s there, by a key that is not for that", shown(user))
}

// wants is as whom, and how signed, the data says that its session is to be used. Data that
// says anything else is an error.
func (l *line) wants(key, data []byte) (user, algorithm string, err error) {
	var m struct {
		Session               []byte
		Kind                  byte
		User, Service, Method string
		Signed                bool
		Algorithm             string
		Key                   []byte
		Rest                  []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(data, &m) != nil || m.Kind != userAuth || m.Service != "ssh-connection" || !m.Signed || !about(m.Key, key) {
		return "", "", errors.New("the program wants something signed that is no signing in")
	}
	if !bytes.Equal(m.Session, l.session) {
		return "", "", errors.New("the program wants to sign in, but not in the session that it showed")
	}
	switch m.Method {
	case "publickey":
		if len(m.Rest) == 0 {
			return m.User, m.Algorithm, nil
		}
	case "publickey-hostbound-v00@openssh.com":
		if bytes.Equal(m.Rest, ssh.Marshal(struct{ Key []byte }{l.bound})) {
			return m.User, m.Algorithm, nil
		}
	}
	return "", "", errors.New("the program wants to sign in otherwise than by a public key at the server that it showed")
}
