// Package reach works out what one box may touch and how its command runs: what the
// writ allows and the spec asks for, as paths, programs, limits and an environment. The
// drivers of this host make mounts and rules of it, each in its own way.
package reach
