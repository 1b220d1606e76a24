package sshagent

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/writ-run/writ/egress/gitssh"
)

// Text is a key as a Login has it, from the text of a private key.
func Text(of func(context.Context) (string, error)) func(context.Context) ([]ssh.Signer, error) {
	return func(ctx context.Context) ([]ssh.Signer, error) {
		text, err := of(ctx)
		if err != nil { // an agent reads it, and need not know where keys are kept
			return nil, errors.New("it is not to be had; an operator runs 'writ secret check' on where egress.ssh.hosts says it is")
		}
		k, err := gitssh.ParseKey(text)
		return []ssh.Signer{k}, err
	}
}

// Theirs are the keys of a person's own agent, at a socket, as a Login has them.
func Theirs(socket string) func(context.Context) ([]ssh.Signer, error) {
	return func(ctx context.Context) ([]ssh.Signer, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, fmt.Errorf("your agent of ssh does not answer at %s", socket)
		}
		context.AfterFunc(ctx, func() { c.Close() })
		keys, err := agent.NewClient(c).Signers()
		if err == nil && len(keys) == 0 {
			err = errors.New("your agent of ssh has none; add one: ssh-add")
		}
		return keys, err
	}
}
