package client

import (
	"context"
	"net/url"
)

// Person is somebody who can decide.
type Person struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Created string `json:"created_at"`
}

// NewPerson is somebody to add, with the passphrase that they chose themselves.
type NewPerson struct {
	Name       string `json:"name"`
	Role       string `json:"role" jsonschema:"viewer, approver, operator or admin"`
	Passphrase string `json:"passphrase"`
}

// NewPersonRequest adds somebody.
type NewPersonRequest struct {
	By     Credentials `json:"by" jsonschema:"an admin; while there is nobody, the first person"`
	Person *NewPerson  `json:"person,omitempty" jsonschema:"left out for the first person, who is added as by says and is an admin"`
}

// RoleRequest gives somebody another role.
type RoleRequest struct {
	Role string      `json:"role" jsonschema:"viewer, approver, operator or admin"`
	By   Credentials `json:"by" jsonschema:"an admin"`
}

// PassphraseRequest replaces somebody's passphrase.
type PassphraseRequest struct {
	Passphrase string      `json:"passphrase" jsonschema:"the new one"`
	By         Credentials `json:"by" jsonschema:"they themselves with the old one, or an admin"`
}

// People lists who can decide.
func (c *Client) People() List[Person] { return list[Person](c, "/v1/people") }

// AddFirstPerson makes the first person.
func (c *Client) AddFirstPerson(ctx context.Context, by Credentials) error {
	return c.do(ctx, "POST", "/v1/people", NewPersonRequest{By: by}, &Status{})
}

// AddPerson adds somebody.
func (c *Client) AddPerson(ctx context.Context, p NewPerson, by Credentials) error {
	return c.do(ctx, "POST", "/v1/people", NewPersonRequest{By: by, Person: &p}, &Status{})
}

// SetRole gives somebody another role.
func (c *Client) SetRole(ctx context.Context, name, role string, by Credentials) error {
	return c.do(ctx, "POST", "/v1/people/"+url.PathEscape(name)+"/role", RoleRequest{Role: role, By: by}, &Status{})
}

// SetPassphrase replaces somebody's passphrase.
func (c *Client) SetPassphrase(ctx context.Context, name, passphrase string, by Credentials) error {
	return c.do(ctx, "POST", "/v1/people/"+url.PathEscape(name)+"/passphrase", PassphraseRequest{Passphrase: passphrase, By: by}, &Status{})
}
