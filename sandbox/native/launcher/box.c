// The launcher of the native sandbox. Go has no hook between fork and exec, and starts
// slowly; this starts at once, forks in microseconds and does what it is told.
//
// It knows no policy. Over a socket it gets scripts of system calls, made in Go by
// package native, and runs each in order: in place, to prepare, or in a child with
// namespaces of its own. The first call that fails ends the script, and is reported
// with its number and errno; the last one of a child's is execve. Without libc, so
// that it is small, static and the same everywhere.
//
// The same program serves at two levels: the factory, in which the view of the system
// is prepared once, makes boxes; a box runs commands.

#include "sys.h"

#define MAGIC 0x74697277 // "writ"

// A request: this, then ops, relocations and data, as one text of size bytes. Scripts
// come from the daemon alone, and are still taken for what they might be.
struct head {
	u32 magic, size;
	u32 ops, relocs, data; // numbers, and where data begins
	u32 mode;              // what to do with the script
	u64 clone;             // flags of the child
	u32 map;               // for a new user namespace: 1 + the offset of "uid map\0gid map\0"
	u32 pad;
};

enum { HERE = 1, CHILD = 2 };

enum { CALL = 1, STORE = 2, INIT = 3, SERVE = 4 };

// An op. kinds holds four bits for each argument of a CALL.
struct op {
	u16 kind, may; // may: an errno that is no failure
	u32 nr, kinds, pad;
	u64 arg[6];
};

enum { VALUE = 0, DATA = 1, RESULT = 2, PASSED = 3, HELD = 4 };

#define MAXFDS 64
#define MAXSIZE (16 << 20)

struct job {
	struct head *head;
	struct op *op;
	u32 *reloc;
	char *data;
	u64 ndata;
	long *result;
	long fd[MAXFDS];
	u32 nfds;
	u64 mapped;
};

// A reply: what happened, two numbers, and times.
struct reply {
	u32 what;
	int a, b;
	u32 pad;
	u64 user, system; // microseconds
};

static int control; // the socket

static void say(u32 what, int a, int b, struct rusage *r)
{
	struct reply m = {what, a, b, 0, 0, 0};
	if (r) {
		m.user = r->utime.sec * 1000000UL + r->utime.usec;
		m.system = r->stime.sec * 1000000UL + r->stime.usec;
	}
	sys(SYS_sendto, control, (long)&m, sizeof m, MSG_NOSIGNAL, 0, 0);
}

static void leave(int code)
{
	for (;;)
		sys(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

static void fail(int n, long err)
{
	say('F', n, (int)-err, 0);
	leave(125);
}

static long wait_for(long pid, int *status, int flags, struct rusage *r)
{
	for (;;) {
		long got = sys(SYS_wait4, pid, (long)status, flags, (long)r, 0, 0);
		if (got != -EINTR)
			return got;
	}
}

// sigwait takes one signal out of those that are blocked.
static int sigwait(u64 set)
{
	for (;;) {
		long got = sys(SYS_rt_sigtimedwait, (long)&set, 0, 0, sizeof set, 0, 0);
		if (got > 0)
			return (int)got;
	}
}

#define BIT(sig) (1UL << ((sig) - 1))
#define HEARD (BIT(SIGCHLD) | BIT(SIGTERM))

// all sends a signal to every other process of this process table. Outside of one of
// its own that would be the host's: then it is not sent.
static void all(int sig)
{
	if (sys(SYS_getpid, 0, 0, 0, 0, 0, 0) == 1)
		sys(SYS_kill, -1, sig, 0, 0, 0, 0);
}

// mask blocks the signals of set and nothing else.
static void mask(u64 set)
{
	sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&set, 0, sizeof set, 0, 0);
}

// init is the first process of a command's process table: it begins the command in a
// child, reaps what it leaves behind, passes on the wish that all should end, and ends
// with it, which ends everything. It returns in the child.
static void init(void)
{
	struct rusage r;
	int status;

	mask(HEARD);
	long first = sys(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (first < 0)
		fail(-1, first);
	if (first == 0) {
		mask(0);
		return;
	}
	// The command's pipes are not held open from here, and nothing in there looks at
	// this process.
	if (control > 0)
		sys(SYS_close_range, 0, control - 1, 0, 0, 0, 0);
	sys(SYS_close_range, control + 1, ~0U, 0, 0, 0, 0);
	sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	for (;;) {
		if (sigwait(HEARD) == SIGTERM) {
			all(SIGTERM);
			all(SIGCONT);
		}
		for (;;) {
			long got = wait_for(-1, &status, WNOHANG, &r);
			if (got <= 0)
				break;
			if (got == first) {
				say('E', status, 0, 0);
				leave(0);
			}
		}
	}
}

static void serve(void);

// reap says whether children that end are waited for (0) or forgotten (1).
static void reap(long handler)
{
	long action[4] = {handler, 0, 0, 0};
	sys(SYS_rt_sigaction, SIGCHLD, (long)action, 0, 8, 0, 0);
}

static long value(struct job *j, struct op *o, int n)
{
	u64 a = o->arg[n];
	switch ((o->kinds >> (4 * n)) & 15) {
	case VALUE:
		return (long)a;
	case DATA:
		return a < j->ndata ? (long)(j->data + a) : 0;
	case RESULT:
		return a < j->head->ops ? j->result[a] : -1;
	case PASSED:
		return a < j->nfds ? j->fd[a] : -1;
	case HELD: // what a call left in data
		return a + 4 <= j->ndata && a < j->ndata ? *(int *)(j->data + a) : -1;
	}
	return -1;
}

// run does a script. It returns the number of the op that failed, with its errno in
// err, or -1 when all are done.
static int run(struct job *j, long *err)
{
	for (u32 i = 0; i < j->head->relocs; i++) {
		u32 at = j->reloc[i];
		if (at + 8UL > j->ndata) {
			*err = -EFAULT;
			return 0;
		}
		*(u64 *)(j->data + at) += (u64)j->data;
	}
	for (u32 i = 0; i < j->head->ops; i++) {
		struct op *o = &j->op[i];
		long r = 0;
		switch (o->kind) {
		case CALL:
			r = sys(o->nr, value(j, o, 0), value(j, o, 1), value(j, o, 2), value(j, o, 3), value(j, o, 4), value(j, o, 5));
			break;
		case STORE: // the result of a call goes into data, for another one
			if (o->arg[0] + 4 > j->ndata)
				r = -EFAULT;
			else
				*(int *)(j->data + o->arg[0]) = (int)value(j, o, 1);
			break;
		case INIT:
			init();
			break;
		case SERVE:
			control = (int)value(j, o, 0);
			for (u32 n = 0; n < j->nfds; n++)
				if (j->fd[n] != control)
					sys(SYS_close, j->fd[n], 0, 0, 0, 0, 0);
			sys(SYS_munmap, (long)j->head, j->mapped, 0, 0, 0, 0);
			reap(0);
			say('R', 0, 0, 0);
			serve();
			break;
		default:
			r = -ENOSYS;
		}
		j->result[i] = r;
		if (r < 0 && r >= -4095 && -r != o->may) {
			*err = r;
			return (int)i;
		}
	}
	return -1;
}

// receive takes one request. It ends the program when there are no more: the daemon is
// gone, and so is everything that depends on this process.
static void receive(struct job *j)
{
	static char ancillary[16 + 4 * MAXFDS];
	struct head h;
	struct iovec v = {&h, sizeof h};
	struct msghdr m = {0, 0, 0, &v, 1, ancillary, sizeof ancillary, 0};
	long n;

	do
		n = sys(SYS_recvmsg, control, (long)&m, MSG_CMSG_CLOEXEC | MSG_WAITALL, 0, 0, 0);
	while (n == -EINTR);
	if (n != sizeof h)
		leave(n == 0 ? 0 : 1);
	if (h.magic != MAGIC || (m.flags & (MSG_CTRUNC | MSG_TRUNC)) || h.size > MAXSIZE || h.ops > 32768 || h.relocs > 65536 ||
	    h.data < sizeof h + h.ops * sizeof(struct op) + 4UL * h.relocs || h.data > h.size)
		leave(1);
	j->nfds = 0;
	if (m.controllen >= 16) {
		struct cmsghdr *c = (struct cmsghdr *)ancillary;
		if (c->level == SOL_SOCKET && c->type == SCM_RIGHTS)
			for (; j->nfds < (c->len - 16) / 4; j->nfds++)
				j->fd[j->nfds] = ((int *)(ancillary + 16))[j->nfds];
	}
	j->mapped = h.size + 8 + h.ops * sizeof(long);
	char *p = (char *)sys(SYS_mmap, 0, j->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((u64)p > -4096UL)
		leave(1);
	memcpy(p, &h, sizeof h);
	for (u64 at = sizeof h; at < h.size;) {
		n = sys(SYS_read, control, (long)(p + at), h.size - at, 0, 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			leave(1);
		at += n;
	}
	j->head = (struct head *)p;
	j->op = (struct op *)(p + sizeof h);
	j->reloc = (u32 *)(p + sizeof h + h.ops * sizeof(struct op));
	j->data = p + h.data;
	j->ndata = h.size - h.data;
	j->result = (long *)(p + ((h.size + 7) & ~7UL));
}

static void done_with(struct job *j)
{
	for (u32 n = 0; n < j->nfds; n++)
		sys(SYS_close, j->fd[n], 0, 0, 0, 0, 0);
	sys(SYS_munmap, (long)j->head, j->mapped, 0, 0, 0, 0);
}

static int write_map(long pid, const char *name, char *text)
{
	char path[64], *p = path;
	p = put(p, "/old/proc/"); // where the factory has the host
	p = put_number(p, pid);
	p = put(p, name);
	long fd = sys(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return (int)fd;
	long n = sys(SYS_write, fd, (long)text, length(text), 0, 0, 0);
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return n < 0 ? (int)n : 0;
}

// base is this process's own mounts, to which it comes back after a command that had a
// copy of them for itself.
static long base = -1;

static int apart(u64 clone)
{
	return (clone & CLONE_NEWNS) && !(clone & CLONE_NEWUSER);
}

static void come_back(void)
{
	if (sys(SYS_setns, base, CLONE_NEWNS, 0, 0, 0, 0) < 0)
		leave(1);
}

// here does a script in place, and says how it went.
static void here(struct job *j)
{
	long err = 0;
	int n = run(j, &err);
	if (n < 0)
		say('S', 0, 0, 0);
	else
		say('F', n, (int)-err, 0);
	done_with(j);
}

// child begins a script in a child. Where it has a user namespace of its own, it waits
// until this process, which may do so, has said who is who in it. This one waits in turn
// until that one ends with its parent: were it gone first, whatever has killed the parent
// would have told neither.
static long child(struct job *j)
{
	int gate[2];
	char *maps = 0, ok = 0;

	if (j->head->map) {
		if (j->head->map > j->ndata || sys(SYS_socketpair, AF_UNIX, SOCK_STREAM | O_CLOEXEC, 0, (long)gate, 0, 0) < 0)
			return -EINVAL;
		maps = j->data + j->head->map - 1;
	}
	if (apart(j->head->clone)) { // in mounts that this process is in as well, and can add to
		long err = base < 0 ? base : sys(SYS_unshare, CLONE_NEWNS, 0, 0, 0, 0, 0);
		if (err < 0)
			return err;
		j->head->clone &= ~(u64)CLONE_NEWNS;
	}
	long pid = sys(SYS_clone, j->head->clone | SIGCHLD, 0, 0, 0, 0, 0);
	if (pid == 0) {
		long err = 0;
		sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
		// What it uses can be seen from outside, as of the command that it becomes. Nothing
		// else is in there yet to look at it.
		sys(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0);
		if (maps) {
			sys(SYS_close, gate[1], 0, 0, 0, 0, 0);
			if (sys(SYS_sendto, gate[0], (long)&ok, 1, MSG_NOSIGNAL, 0, 0) != 1 || sys(SYS_read, gate[0], (long)&ok, 1, 0, 0, 0) != 1)
				leave(125);
			sys(SYS_close, gate[0], 0, 0, 0, 0, 0);
		}
		mask(0);
		int n = run(j, &err);
		fail(n, n < 0 ? -EINVAL : err);
	}
	if (maps) {
		sys(SYS_close, gate[0], 0, 0, 0, 0, 0);
		long err = pid < 0 ? 0 : write_map(pid, "/uid_map", maps);
		if (pid > 0 && err == 0)
			err = write_map(pid, "/gid_map", maps + length(maps) + 1);
		if (pid > 0 && err == 0 && sys(SYS_read, gate[1], (long)&ok, 1, 0, 0, 0) != 1)
			err = -ESRCH;
		if (pid > 0 && err == 0) {
			say('B', (int)pid, 0, 0);
			sys(SYS_sendto, gate[1], (long)&ok, 1, MSG_NOSIGNAL, 0, 0);
		}
		sys(SYS_close, gate[1], 0, 0, 0, 0, 0);
		if (err < 0)
			return err;
	}
	return pid;
}

// make makes a box, which is told of on its own socket, as it answers there by itself
// afterwards. Its namespaces take the kernel a while, so a child does that, and others are
// made meanwhile; the box is this process's child all the same.
static void make(struct job *j)
{
	long me = sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long first = sys(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0), pid = first;
	int factory = control;

	if (first > 0)
		return;
	control = j->nfds ? (int)j->fd[0] : -1;
	if (first == 0) {
		sys(SYS_close, factory, 0, 0, 0, 0, 0); // or nobody would hear that the factory is gone
		sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
		if (sys(SYS_getppid, 0, 0, 0, 0, 0, 0) != me)
			leave(0); // it is gone already, and would not be a parent
		j->head->clone |= CLONE_PARENT;
		pid = child(j);
	}
	if (pid < 0)
		say('F', -2, (int)-pid, 0);
	if (first == 0)
		leave(0);
	control = factory;
}

// use adds what a process used to what others did.
static void use(struct rusage *sum, struct rusage *r)
{
	sum->utime.sec += r->utime.sec, sum->utime.usec += r->utime.usec;
	sum->stime.sec += r->stime.sec, sum->stime.usec += r->stime.usec;
}

// orphans reaps what has ended besides the command, which is left to be waited for: a
// process that nobody waits for takes the place of another one.
static void orphans(long command, struct rusage *sum)
{
	struct rusage r;
	int id[32]; // siginfo_t, on 64 bits; at 4 is the process
	int status;

	for (;;) {
		id[4] = 0;
		if (sys(SYS_waitid, P_ALL, 0, (long)id, WNOHANG | WEXITED | WNOWAIT, 0, 0) < 0 || id[4] == 0)
			return;
		if (id[4] == command || wait_for(id[4], &status, WNOHANG, &r) <= 0)
			return; // the command has ended, and the rest with it
		use(sum, &r);
	}
}

// attend waits for a command, and for what the daemon says meanwhile: t, that it should
// end; k, that it must; m, that there is something to do, such as a mount before it
// begins; or a signal's number. A daemon that is gone has said k. Where the command has no init of its
// own, this process is that.
static void attend(long pid, u64 clone)
{
	struct rusage r, sum = {0};
	struct pollfd p[3] = {{control, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
	int status, over = 0, first = !(clone & CLONE_NEWPID);
	u64 ends = BIT(SIGCHLD);
	char c, end[128]; // struct signalfd_siginfo

	sys(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0); // nothing in there looks at this process
	p[1].fd = (int)sys(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);
	if (first) {
		mask(ends);
		p[2].fd = (int)sys(SYS_signalfd4, -1, (long)&ends, sizeof ends, O_CLOEXEC, 0, 0);
		orphans(pid, &sum); // that ended before their end was told
	}
	if (p[1].fd < 0 || (first && p[2].fd < 0))
		sys(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
	while (p[1].fd >= 0) {
		if (sys(SYS_ppoll, (long)p, 3, 0, 0, 0, 0) < 0)
			continue;
		if (p[1].revents)
			break;
		if (p[2].revents) {
			sys(SYS_read, p[2].fd, (long)end, sizeof end, 0, 0, 0);
			orphans(pid, &sum);
		}
		if (!p[0].revents)
			continue;
		if (sys(SYS_read, control, (long)&c, 1, 0, 0, 0) != 1) {
			over = 1;
			c = 'k';
			p[0].fd = -1;
		}
		if (c == 'm') {
			struct job j;
			receive(&j);
			here(&j);
		} else if (c == 'k')
			sys(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
		else if (c > 0 && c <= 31) // a signal that somebody at a terminal sent
			all(c);
		else if (!first)
			sys(SYS_kill, pid, SIGTERM, 0, 0, 0, 0); // its init passes it on
		else {
			all(SIGTERM);
			all(SIGCONT);
		}
	}
	for (int n = 1; n < 3; n++)
		if (p[n].fd >= 0)
			sys(SYS_close, p[n].fd, 0, 0, 0, 0, 0);
	wait_for(pid, &status, 0, &r);
	use(&sum, &r);
	if (first) { // what is left ends now, if there is anything
		int any;
		say('E', status, 0, 0);
		for (long got; (got = wait_for(-1, &any, WNOHANG, &r)) >= 0;) {
			if (got == 0)
				all(SIGKILL), got = wait_for(-1, &any, 0, &r);
			if (got > 0)
				use(&sum, &r);
		}
		mask(0);
	}
	if (over)
		leave(0);
	say('D', status, 0, &sum);
}

static void serve(void)
{
	struct job j;

	for (;;) {
		receive(&j);
		if (j.head->mode == HERE) {
			here(&j);
			continue;
		}
		u64 clone = j.head->clone;
		if (clone & CLONE_NEWUSER) {
			make(&j);
			done_with(&j);
			continue;
		}
		if (apart(clone) && base < 0)
			base = sys(SYS_openat, AT_FDCWD, (long)"/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC, 0, 0, 0);
		long pid = child(&j);
		done_with(&j);
		if (pid < 0)
			say('F', -2, (int)-pid, 0);
		else
			attend(pid, clone);
		if (apart(clone))
			come_back();
	}
}

void begin(void)
{
	control = 3;
	sys(SYS_close_range, control + 1, ~0U, 0, 0, 0, 0); // what was open in who started the daemon
	sys(SYS_prctl, PR_SET_NAME, (long)"writ-box", 0, 0, 0, 0);
	reap(1); // boxes that end are nobody's zombies
	serve();
}
