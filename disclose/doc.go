// Package disclose lets an agent with many tools read about few of them (§11).
//
// What is known of a tool is an [Entry], and a model sees it at three levels: one
// line (L1, [Entry.Line]) of every tool it may use, listed and searched by [Index];
// the full definition (L2, [Entry.Full]) of those it loads, which a [Session] keeps
// within a budget; and a resource (L3, [Entry.Resource]) at a time. Budgets are in
// tokens, as [Tokens] counts them.
//
// Entries come from upstream servers and from files too, so their texts are hostile:
// they are shown as package display shows them, bounded in size, and read in bounded
// time. What does not fit is left out with a word that says where to find it.
//
// The package decides nothing about access. An Index is made of the entries that one
// agent may see, and whoever holds a Session asks the gate all the same: a tool that
// is not loaded is not callable, one that is loaded may still be denied.
package disclose
