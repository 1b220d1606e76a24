package sandboxtest

// Numbers that package syscall does not have.
const (
	vmReadv      = 310
	kcmp         = 312
	bpfCall      = 321
	perfOpen     = 298
	userfaultfd  = 323
	setnsCall    = 308
	nameToHandle = 303
	prlimitCall  = 302
	fanotifyInit = 300
)
