// Package gitssh speaks ssh to a server of repositories in place of a box. Git in the box
// says by its own plain protocol (git://) which repository it wants; here that is held
// against what was decided, the server's key against those that are known, and one of two
// commands is run there for that repository. The key, the connection that it opens and
// everything else that could be done with either stay outside of the box (I7).
//
// Between the two goes what git says to git, unread.
package gitssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/writ-run/writ/egress"
)

// A Repository is one that a call was decided for.
type Repository struct {
	Address    string // host:port, as known hosts have it
	User       string
	Path       string                                // as the server is asked for it
	Push       bool                                  // it is changed; otherwise it is read
	Key        func(context.Context) (string, error) // private key, looked up when it is needed; nil: there is none for this server
	KnownHosts string                                // file of servers' keys
}

// Bounds of what is waited for and kept.
const (
	beginWithin = 20 * time.Second
	endWithin   = 10 * time.Second
	maxErrors   = 4 << 10
)

// refused is an error that the box is told, and that it was refused something.
type refused struct{ why string }

func (r refused) Error() string        { return r.why }
func (r refused) Is(target error) bool { return target == egress.ErrRefused }

// Speak is an egress.Via.
func (r Repository) Speak(ctx context.Context, box, out net.Conn) error {
	err := r.speak(ctx, box, out)
	if err != nil {
		complain(box, err.Error())
	}
	return err
}

func (r Repository) speak(ctx context.Context, box, out net.Conn) error {
	box.SetReadDeadline(time.Now().Add(beginWithin))
	wants, err := readRequest(box)
	box.SetReadDeadline(time.Time{})
	if err != nil {
		return refused{"git did not say what it wants"}
	}
	command, err := r.command(wants)
	if err != nil {
		return err
	}
	client, err := r.connect(ctx, out)
	if err != nil {
		return err
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	return exchange(client, command, wants.protocol, box)
}

// command is what is run on the server: of two, one, with the path that was decided on
// and no other. Its characters are few, and none of them means something in quotes.
func (r Repository) command(wants request) (string, error) {
	service := "git-upload-pack"
	if r.Push {
		service = "git-receive-pack"
	}
	if wants.service != service || strings.TrimPrefix(wants.path, "/") != strings.TrimPrefix(r.Path, "/") {
		return "", refused{"git wants something else than the call was decided for"}
	}
	if strings.ContainsAny(r.Path, "'\\\n\x00!") {
		return "", refused{"the path cannot be said to a server"}
	}
	return service + " '" + r.Path + "'", nil
}

// connect signs in, at a server whose key is known.
func (r Repository) connect(ctx context.Context, out net.Conn) (*ssh.Client, error) {
	known, err := KnownOf(r.Address, r.KnownHosts)
	if err != nil {
		return nil, err
	}
	if r.Key == nil {
		return nil, refused{"there is no key for " + r.User + "@" + r.Address + "; an operator writes egress.ssh.hosts"}
	}
	text, err := r.Key(ctx)
	if err != nil { // an agent reads it, and need not know where keys are kept
		return nil, refused{"the key for " + r.Address + " is not to be had; an operator runs 'writ secret check' on where egress.ssh.hosts says it is"}
	}
	signer, err := ParseKey(text)
	if err != nil {
		return nil, refused{"the key for " + r.Address + " cannot be used: " + err.Error()}
	}
	timer := time.AfterFunc(beginWithin, func() { out.Close() })
	defer timer.Stop()
	conn, channels, requests, err := ssh.NewClientConn(out, r.Address, &ssh.ClientConfig{
		User: r.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyAlgorithms: known.kinds(), HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error { return known.Shows(key) }, ClientVersion: "SSH-2.0-writ",
	})
	if err != nil {
		return nil, explain(r.Address, err)
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// exchange runs the command and hands over both ways until the server is done.
func exchange(client *ssh.Client, command, protocol string, box net.Conn) error {
	session, err := client.NewSession()
	if err != nil {
		return errors.New("the server opens no session")
	}
	defer session.Close()
	if protocol != "" {
		session.Setenv("GIT_PROTOCOL", protocol) // a server that does not take it speaks the older one
	}
	to, err := session.StdinPipe()
	if err != nil {
		return err
	}
	from, err := session.StdoutPipe()
	if err != nil {
		return err
	}
	said := &head{most: maxErrors}
	session.Stderr = said
	if err := session.Start(command); err != nil {
		return errors.New("the server does not run git")
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		io.Copy(to, box)
		to.Close()
	}()
	n, _ := io.Copy(box, from)
	timer := time.AfterFunc(endWithin, func() { client.Close() })
	defer timer.Stop()
	err = session.Wait()
	box.SetReadDeadline(time.Now()) // the server is done, whatever git still says
	<-copied
	if n == 0 && err != nil { // it said no word of git's
		return fmt.Errorf("the server ended it: %s", said.text())
	}
	return nil
}

// head keeps the first bytes of what is written to it.
type head struct {
	most int
	kept []byte
}

func (h *head) Write(b []byte) (int, error) {
	h.kept = append(h.kept, b[:min(len(b), h.most-len(h.kept))]...)
	return len(b), nil
}

// text is one line of plain characters: it goes into a log.
func (h *head) text() string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, string(h.kept)))
}
