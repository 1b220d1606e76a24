// Package probe finds out what a driver's boxes really hold: it starts one, tries
// forbidden things inside, and says what happened. Drivers of this host share it.
package probe
