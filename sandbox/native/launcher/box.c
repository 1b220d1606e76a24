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

enum { HERE = 1, CHILD = 2, ASIDE = 3, BOX = 4 };

enum { CALL = 1, STORE = 2, INIT = 3, SERVE = 4, MAKE_KEY = 5 };

// An op. kinds holds four bits for each argument of a CALL.
struct op {
	u16 kind, may; // may: an errno that is no failure
	u32 nr, kinds, pad;
	u64 arg[6];
};

enum { VALUE = 0, DATA = 1, RESULT = 2, PASSED = 3, HELD = 4, KEY = 5 };

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
	int room;    // in which it lies
	u32 next;    // the op to do
	int control; // the socket on which to say how it went
};

// A request lies in one of two rooms until the next one comes there: a process that shares
// this one's memory is begun by what is in one, and asked in the other. Most are small.
#define ROOM (64 << 10)
static char rooms[2][ROOM] __attribute__((aligned(16)));

// What was too large for a room, and has a mapping instead.
static struct {
	char *at;
	u64 size;
} large[2];

// A reply: what happened, two numbers, and times.
struct reply {
	u32 what;
	int a, b;
	u32 pad;
	u64 user, system; // microseconds
};

static void say(int to, u32 what, int a, int b, struct rusage *r)
{
	struct reply m = {what, a, b, 0, 0, 0};
	if (r) {
		m.user = r->utime.sec * 1000000UL + r->utime.usec;
		m.system = r->stime.sec * 1000000UL + r->stime.usec;
	}
	sys(SYS_sendto, to, (long)&m, sizeof m, MSG_NOSIGNAL, 0, 0);
}

static void leave(int code)
{
	for (;;)
		sys(SYS_exit_group, code, 0, 0, 0, 0, 0);
}

static void fail(int to, int n, long err)
{
	say(to, 'F', n, (int)-err, 0);
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

// key is what this process shows the filter that it is under, where it is: calls that no
// command may make are let through with it as their sixth argument, which the kernel does not
// look at. It is made up here, said to nobody, and gone from what executes a program.
static u64 key;

static long make_key(struct job *j, struct op *o)
{
	while (!key) {
		long n = sys(SYS_getrandom, (long)&key, sizeof key, 0, 0, 0, 0);
		if (n != sizeof key) {
			key = 0;
			if (n != -EINTR)
				return n < 0 ? n : -EIO;
		}
	}
	for (int n = 0; n < 2; n++) {
		if (o->arg[n] > j->ndata || o->arg[n] + 4 > j->ndata)
			return -EFAULT;
		*(u32 *)(j->data + o->arg[n]) = (u32)(key >> (32 * n));
	}
	return 0;
}

static int run(struct job *j, long *err);

// finish does what is left of a script in a process of its own, which ends with it.
static void finish(void *with)
{
	struct job *j = with;
	long err = 0;

	mask(0);
	int n = run(j, &err);
	fail(j->control, n, n < 0 ? -EINVAL : err);
}

// The stacks of processes that share this one's memory: until they execute something they
// are its own code, and to copy the memory takes longer than what they do.
static char stacks[2][16 << 10] __attribute__((aligned(16)));

static long begin_in(int stack, u64 flags, void (*what)(void *), void *with)
{
	return spawn(flags | CLONE_VM | SIGCHLD, stacks[stack] + sizeof stacks[stack], what, with, key);
}

// init is the first process of a command's process table: it begins the command in a
// child, reaps what it leaves behind, passes on the wish that all should end, and ends
// with it, which ends everything. How it ended is what this one ends with, unless that is
// a signal: then it says so.
static void init(struct job *j)
{
	int control = j->control, status;
	struct rusage r;

	mask(HEARD);
	long first = begin_in(1, 0, finish, j);
	if (first < 0)
		fail(control, -1, first);
	// The command's pipes are not held open from here.
	if (control > 0)
		sys(SYS_close_range, 0, control - 1, 0, 0, 0, 0);
	sys(SYS_close_range, control + 1, ~0U, 0, 0, 0, 0);
	for (;;) {
		if (sigwait(HEARD) == SIGTERM) {
			all(SIGTERM);
			all(SIGCONT);
		}
		for (;;) {
			long got = wait_for(-1, &status, WNOHANG, &r);
			if (got <= 0)
				break;
			if (got != first)
				continue;
			if (status & 0x7f)
				say(control, 'E', status, 0, 0);
			leave(status >> 8);
		}
	}
}

static void serve(int from, int to, int room);

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
	case KEY:
		return (long)key;
	}
	return -1;
}

// run does a script from its next op on. It returns the number of the op that failed, with
// its errno in err, or -1 when all are done.
static int run(struct job *j, long *err)
{
	while (j->next < j->head->ops) {
		u32 i = j->next++;
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
		case MAKE_KEY: // its halves go into data, for a filter
			r = make_key(j, o);
			break;
		case INIT: // the rest is its child's
			init(j);
			break;
		case SERVE: {
			int control = (int)value(j, o, 0);
			for (u32 n = 0; n < j->nfds; n++)
				if (j->fd[n] != control)
					sys(SYS_close, j->fd[n], 0, 0, 0, 0, 0);
			reap(0);
			say(j->control, 'R', 0, 0, 0);
			serve(control, j->control, !j->room);
			break;
		}
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

// receive takes one request, into a room where it is not too large for that. It ends the
// program when there are no more: the daemon is gone, and so is everything that depends on
// this process.
static void receive(int from, int room, struct job *j)
{
	char ancillary[16 + 4 * MAXFDS] __attribute__((aligned(8)));
	struct head h;
	struct iovec v = {&h, sizeof h};
	struct msghdr m = {0, 0, 0, &v, 1, ancillary, sizeof ancillary, 0};
	long n;

	do
		n = sys(SYS_recvmsg, from, (long)&m, MSG_CMSG_CLOEXEC | MSG_WAITALL, 0, 0, 0);
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
	u64 size = h.size + 8 + h.ops * sizeof(long);
	char *p = rooms[room];
	j->room = room;
	if (large[room].size)
		sys(SYS_munmap, (long)large[room].at, large[room].size, 0, 0, 0, 0);
	large[room].size = 0;
	if (size > ROOM) {
		p = (char *)sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if ((u64)p > -4096UL)
			leave(1);
		large[room].at = p, large[room].size = size;
	}
	memcpy(p, &h, sizeof h);
	for (u64 at = sizeof h; at < h.size;) {
		n = sys(SYS_read, from, (long)(p + at), h.size - at, 0, 0, 0);
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
	j->next = 0;
	for (u32 i = 0; i < h.relocs; i++) {
		if (j->reloc[i] + 8UL > j->ndata)
			leave(1);
		*(u64 *)(j->data + j->reloc[i]) += (u64)j->data;
	}
}

// shut closes what was passed along with a request.
static void shut(struct job *j)
{
	for (u32 n = 0; n < j->nfds; n++)
		sys(SYS_close, j->fd[n], 0, 0, 0, 0, 0);
}

// host is the host's /proc, where boxes are made.
static long host = -1;

static int write_map(long pid, const char *name, char *text)
{
	char path[64];
	put(put_number(path, pid), name);
	long fd = sys(SYS_openat, host, (long)path, O_WRONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return (int)fd;
	long n = sys(SYS_write, fd, (long)text, length(text), 0, 0, 0);
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return n < 0 ? (int)n : 0;
}

// base is this process's own mounts, to which it comes back after a command that had a
// copy of them for itself.
static long base = -1;

static void come_back(void)
{
	if (sys(SYS_setns, base, CLONE_NEWNS, 0, 0, 0, key) < 0)
		leave(1);
}

// here does a script in place, and says how it went: done or failed.
static void here(struct job *j, u32 done, u32 failed)
{
	long err = 0;
	int n = run(j, &err);
	if (n < 0)
		say(j->control, done, 0, 0, 0);
	else
		say(j->control, failed, n, (int)-err, 0);
	shut(j);
}

// begun is a child that a script is begun in.
static void begun(void *with)
{
	sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	finish(with);
}

// child begins a script in a child, in mounts that this process is in as well, and can
// add to.
static long child(struct job *j)
{
	u64 clone = j->head->clone;

	if (clone & CLONE_NEWNS) {
		long err = base < 0 ? base : sys(SYS_unshare, CLONE_NEWNS, 0, 0, 0, 0, key);
		if (err < 0)
			return err;
	}
	return begin_in(0, clone & ~(u64)CLONE_NEWNS, begun, j);
}

// settle begins a script in a child with a user namespace of its own, which is a child of
// this process's parent. It waits until this process, which may do so, has said who is who in
// it. This one waits in turn until that one ends with its parent: were it gone first, whatever
// has killed the parent would have told neither.
static long settle(int from, struct job *j)
{
	int gate[2];
	char ok = 0;

	if (!j->head->map || j->head->map > j->ndata || sys(SYS_socketpair, AF_UNIX, SOCK_STREAM | O_CLOEXEC, 0, (long)gate, 0, 0) < 0)
		return -EINVAL;
	char *maps = j->data + j->head->map - 1;
	long pid = sys(SYS_clone, j->head->clone | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0, 0);
	if (pid == 0) {
		sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
		sys(SYS_close, from, 0, 0, 0, 0, 0);
		sys(SYS_close, host, 0, 0, 0, 0, 0);
		sys(SYS_close, base, 0, 0, 0, 0, 0);
		sys(SYS_close, gate[1], 0, 0, 0, 0, 0);
		base = -1;
		if (sys(SYS_sendto, gate[0], (long)&ok, 1, MSG_NOSIGNAL, 0, 0) != 1 || sys(SYS_read, gate[0], (long)&ok, 1, 0, 0, 0) != 1)
			leave(125);
		sys(SYS_close, gate[0], 0, 0, 0, 0, 0);
		finish(j);
	}
	sys(SYS_close, gate[0], 0, 0, 0, 0, 0);
	long err = pid < 0 ? 0 : write_map(pid, "/uid_map", maps);
	if (pid > 0 && err == 0)
		err = write_map(pid, "/gid_map", maps + length(maps) + 1);
	if (pid > 0 && err == 0 && sys(SYS_read, gate[1], (long)&ok, 1, 0, 0, 0) != 1)
		err = -ESRCH;
	if (pid > 0 && err == 0) {
		say(j->control, 'B', (int)pid, 0, 0);
		sys(SYS_sendto, gate[1], (long)&ok, 1, MSG_NOSIGNAL, 0, 0);
	}
	sys(SYS_close, gate[1], 0, 0, 0, 0, 0);
	return err < 0 ? err : pid;
}

// box makes one, which answers by itself on a socket of its own: in the mounts of a second
// descriptor, where there is one. Of processes that do this the factory has several, since
// namespaces take the kernel a while.
static void box(int from, struct job *j)
{
	long err = 0;

	j->control = j->nfds ? (int)j->fd[0] : -1;
	if (host < 0) // where the factory has it
		host = sys(SYS_openat, AT_FDCWD, (long)"/old/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
	if (base < 0)
		base = sys(SYS_openat, host, (long)"self/ns/mnt", O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (base < 0)
		err = base;
	else if (j->nfds > 1)
		err = sys(SYS_setns, j->fd[1], CLONE_NEWNS, 0, 0, 0, 0);
	if (err >= 0)
		err = settle(from, j);
	if (err < 0)
		say(j->control, 'F', -2, (int)-err, 0);
	if (base >= 0 && j->nfds > 1)
		come_back();
}

// aside does a script in a child, which answers by itself on a socket of its own: what takes
// the kernel a while is done while others are begun.
static void aside(int factory, struct job *j)
{
	long me = sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	u64 clone = j->head->clone;
	long pid = sys(SYS_clone, clone | SIGCHLD, 0, 0, 0, 0, 0);

	if (pid > 0)
		return;
	j->control = j->nfds ? (int)j->fd[0] : -1;
	if (pid < 0) {
		say(j->control, 'F', -2, (int)-pid, 0);
		return;
	}
	sys(SYS_close, factory, 0, 0, 0, 0, 0); // or nobody would hear that the factory is gone
	sys(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	if (!(clone & CLONE_NEWPID) && sys(SYS_getppid, 0, 0, 0, 0, 0, 0) != me)
		leave(0); // it is gone already, and would not be a parent
	finish(j);
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

// What outlives who made it: queues, semaphores and memory of System V. The kernel says, at
// a place in what it tells of each kind, how many there are. (Queues of POSIX nobody in a box
// may make: RLIMIT_MSGQUEUE.)
static const struct kind {
	int call, info, stat, at;
} kinds[] = {{SYS_msgctl, MSG_INFO, MSG_STAT_ANY, 0}, {SYS_semctl, SEM_INFO, SEM_STAT_ANY, 7}, {SYS_shmctl, SHM_INFO, SHM_STAT_ANY, 0}};

static long ask(const struct kind *k, long id, long what, void *told)
{
	if (k->call == SYS_semctl)
		return sys(k->call, id, 0, what, (long)told, 0, 0);
	return sys(k->call, id, what, (long)told, 0, 0, 0);
}

// left removes it all, and reports whether something may be left.
static int left(void)
{
	int told[64];

	for (const struct kind *k = kinds; k < kinds + 3; k++) {
		long id, last = ask(k, 0, k->info, told);
		if (last >= 0 && !told[k->at])
			continue;
		for (long i = 0; i <= last; i++)
			if ((id = ask(k, i, k->stat, told)) >= 0)
				ask(k, id, IPC_RMID, 0);
		if (ask(k, 0, k->info, told) < 0 || told[k->at])
			return 1;
	}
	return 0;
}

// attend waits for a command, and for what the daemon says meanwhile: t, that it should
// end; k, that it must; m, that there is something to do, such as a mount before it
// begins; or a signal's number. A daemon that is gone has said k. Where the command has no init of its
// own, this process is that.
static void attend(struct job *began, long pid)
{
	u64 clone = began->head->clone;
	int control = began->control;
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
		long got = sys(SYS_ppoll, (long)p, 3, 0, 0, 0, 0);
		if (got == -EINTR)
			continue;
		if (got < 0) { // it cannot hear anything any more
			sys(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
			break;
		}
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
			receive(control, began->room, &j); // which is done with
			j.control = control;
			here(&j, 'S', 'F');
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
	say(control, 'D', status, first ? 0 : left(), &sum);
}

// serve does what it is told on one socket, and says how it went on another. They are the
// same but for what becomes a command, which executes nothing else and whose launcher is
// listened to already.
static void serve(int from, int to, int room)
{
	struct job j;

	for (;;) {
		receive(from, room, &j);
		j.control = to;
		if (j.head->mode == HERE) {
			if (from == to)
				here(&j, 'S', 'F');
			else
				here(&j, 'O', 'N');
			continue;
		}
		if (j.head->mode == ASIDE) {
			aside(from, &j);
			shut(&j);
			continue;
		}
		if (j.head->mode == BOX) {
			box(from, &j);
			shut(&j);
			continue;
		}
		u64 clone = j.head->clone;
		if ((clone & CLONE_NEWNS) && base < 0)
			base = sys(SYS_openat, AT_FDCWD, (long)"/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC, 0, 0, 0);
		long pid = child(&j);
		shut(&j);
		if (pid < 0)
			say(to, 'F', -2, (int)-pid, 0);
		else
			attend(&j, pid);
		if (clone & CLONE_NEWNS)
			come_back();
	}
}

void begin(void)
{
	int control = 3;

	sys(SYS_close_range, control + 1, ~0U, 0, 0, 0, 0); // what was open in who started the daemon
	sys(SYS_prctl, PR_SET_NAME, (long)"writ-box", 0, 0, 0, 0);
	reap(1); // boxes that end are nobody's zombies
	serve(control, control, 0);
}
