package supervise

import "github.com/writ-run/writ"

// A Failure is the step on the way to the command that could not be done.
type Failure struct{ Step, Cause string }

func (f *Failure) Error() string { return f.Step + ": " + f.Cause }

// Failed is the step and why; it is for errors alone.
func Failed(step string, err error) *Failure { return &Failure{step, err.Error()} }

// The steps, which are also what a message to people is chosen by.
const (
	StepJob      = "take the job"
	StepSpace    = "namespaces"
	StepMount    = "mount"
	StepHide     = "hide"
	StepSeal     = "keep mounts read-only"
	StepLandlock = "landlock"
	StepDrop     = "drop privileges"
	StepDir      = "change directory"
	StepSeccomp  = "seccomp"
	StepLimits   = "limits"
	StepFind     = "find the program"
	StepExec     = "execute"
)

// explain is the failure with something to do.
func (f *Failure) explain() error {
	kind, msg := writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up ("+f.Step+")"
	switch f.Step {
	case StepSpace:
		msg = "sandbox_unavailable: no user or mount namespace can be made; as an ordinary user allow unprivileged user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), in a container give CAP_SYS_ADMIN"
	case StepMount:
		msg = "sandbox_unavailable: the box's mounts cannot be made; each writable root must exist and be reached without symlinks, and user namespaces must be allowed to mount (on Ubuntu: an AppArmor profile with userns)"
	case StepHide:
		msg = "sandbox_unavailable: " + f.Cause
	case StepSeal:
		msg = "sandbox_unavailable: " + f.Error()
	case StepLandlock:
		msg = "sandbox_unavailable: Landlock ABI 6 is needed; use Linux 6.12 or later with landlock in the lsm= list of the kernel"
	case StepSeccomp:
		msg = "sandbox_unavailable: seccomp filters are needed; use a kernel with CONFIG_SECCOMP_FILTER on amd64 or arm64"
	case StepDir:
		kind, msg = writ.Invalid, "the working directory cannot be entered by the user of the box; check the modes of the directories above it"
	case StepFind:
		kind, msg = writ.NotFound, f.Cause
	case StepExec:
		kind, msg = writ.Invalid, "the command cannot be executed: "+f.Cause
	}
	return writ.Fail(kind, msg, f)
}
