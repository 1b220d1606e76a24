//go:build linux && !amd64

package sandboxtest

// Numbers of the generic table, which arm64 has.
const (
	vmReadv      = 270
	kcmp         = 272
	bpfCall      = 280
	perfOpen     = 241
	userfaultfd  = 282
	setnsCall    = 268
	nameToHandle = 264
	prlimitCall  = 261
	fanotifyInit = 262
)
