// Package docker starts boxes as containers of a Docker or Podman engine.
//
// A box is a container in which nothing runs but a process that waits: the view of files,
// the limits and the namespaces are the engine's. A call is an exec in it. What that starts
// is this program, bound into the container, which gives up what is left to give up
// (Landlock, seccomp, limits of single processes), becomes the command in a process of its
// own and stays behind to watch over it: it ends the command's whole tree and nothing else,
// and tells how it ended. Daemon and supervisor talk over the streams of the exec, in
// frames; there is no socket inside.
//
// A box that reaches hosts shares the network namespace of a second container, its sidecar,
// which has nothing but loopback. This program, in there, leads what leaves it to sockets
// that the daemon is handed; the sidecar decides nothing, and without it nothing gets out.
//
// The first process of a container ends when the connection to it does, so that nothing is
// left of a daemon that was killed: the engine removes the container by itself. What is
// left all the same is found at the next start by a label that only this deployment could
// have written.
package docker
