// Package usage counts what a process and everything that came of it have used: bytes
// written to disks and time on the processors. The kernel limits neither for several
// processes together, so whoever started them looks now and then, and ends them.
//
// A child counts for its parent once it was waited for. What a process that ignores the
// end of its children starts counts only while it lives; and so does, for an ordinary user,
// what was left behind by a parent that ended before it. What a process wrote that has ended
// and was not waited for yet does not count for an ordinary user; its time does.
package usage
