// Package egress is the only way out: of a box, and of a tool that runs in this process.
//
// A Broker opens a Pass for each run, which knows what that run may reach. Names are
// resolved here, every answer is classified, and the address that was checked is the one
// that is dialled (I6). What a run says about where it goes (the name in TLS, the Host of
// a request) must be what was decided, each time it says so. Whatever the broker cannot
// see into counts as changing something there, unless a rule states otherwise.
//
// Each connection and each question is told to the broker's log with its call, its rule,
// its verdict and how much went through.
package egress
