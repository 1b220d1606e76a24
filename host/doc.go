// Package host is the one grammar of hosts and the one table of address classes.
//
// A string becomes a [Host], an [Endpoint] or a [Pattern] here, once; the parsed
// value is what is decided on, matched, resolved and dialled (I4, I6). There is
// no lenient mode: what two parsers could read differently is an error, and
// nothing is repaired on the way in except ASCII letter case.
//
// [Classify] names the class of an address that writ resolved. Only [Public] is
// reachable without a rule that says the range.
//
// The package is pure: it resolves nothing, dials nothing and keeps no state, so
// everything in it may be called from many goroutines. It does not decide: a
// match is one input of a decision. It does not look inside addresses that embed
// another (mapped, NAT64, 6to4, Teredo, ISATAP); it names them, and none of them
// is public.
//
// testdata/vectors.txt is the published table of what is accepted, refused,
// matched and named.
package host
