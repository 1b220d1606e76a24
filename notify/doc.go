// Package notify tells programs and people outside what happens to calls: it makes messages
// of what the ledger says, and delivers them to webhooks, each in the ledger's order, signed,
// at least once, and with an id by which a receiver drops what it got already.
//
// A message names a call, its tool, its agent and where to look; never arguments. Whoever
// reads one can decide nothing by it: answering takes a person's passphrase at writ itself.
// The package dials nothing: it is handed the way out.
package notify
