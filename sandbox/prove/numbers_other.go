//go:build !amd64

package prove

// Numbers of the generic table, which arm64 has.
const (
	inotifyNr   = "27"
	renameat2Nr = "276"
	linkatNr    = "37"
	cloneNr     = "220"
	exitNr      = "93"
	tgkillNr    = "131"
	sigqueueNr  = "138"
	ptraceNr    = "117"
	vmReadNr    = "270"
)
