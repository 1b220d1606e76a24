// Package seatbelt is the sandbox driver of macOS: it writes a profile in the language of
// sandbox-exec and runs the command under it. The profile is a pure function of a [Plan]
// and is the same on every system; boxes start on macOS only.
//
// In a profile the last rule that matches decides. So it begins with nothing allowed,
// allows what the plan names and what programs cannot do without, and ends with what is
// out of reach whatever came before: protected names, then Hide, then the network.
//
// What a profile cannot hold, and the driver therefore does not claim: processes that leave
// the process group outlive the command, since macOS has no namespace of processes; nor is
// there a bound on memory or processes of a box. A confinement that demands these is
// refused.
package seatbelt
