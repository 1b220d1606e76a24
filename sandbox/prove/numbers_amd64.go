package prove

// System calls that scripts make by number on every system.
const (
	inotifyNr   = "254"
	renameat2Nr = "316"
	linkatNr    = "265"
	cloneNr     = "56"
	exitNr      = "60"
	tgkillNr    = "234"
	sigqueueNr  = "129"
	ptraceNr    = "101"
	vmReadNr    = "310"
)
