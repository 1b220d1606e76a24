// Package prove attacks the boxes of a sandbox driver on this machine and says what
// held. It is one suite for every driver: tests run it through package sandboxtest, and
// people run it with "writ doctor --prove".
//
// Each probe has a control: the same kind of thing, allowed, done by the same means. An
// attack whose control does not work proves nothing, and one that fails for another
// reason than the expected refusal proves nothing either: both are inconclusive, never
// held. What a driver does not claim is not attacked; instead a confinement that demands
// it must be refused by name.
//
// Attacks are harmless where they work: they go for files, processes and sockets that the
// suite made for itself, and system calls get arguments that change nothing. The boxes
// need bash, coreutils and python3; see [Missing]. It does not say that a kernel has no
// holes, and it tries nothing that takes more than one box.
package prove
