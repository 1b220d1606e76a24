// Package supervise holds boxes that are processes of this host: the daemon starts a
// supervisor, by itself or through a wrapper, and hands it a job; the supervisor starts
// what becomes the command, does as the daemon says, and tells how it ended. Both are this
// program again. A supervisor ends when the daemon lets go of it, kill -9 included (I14),
// and not before everything in its box has.
//
// How a box is confined, and how its processes are found and killed, is each driver's own.
package supervise
