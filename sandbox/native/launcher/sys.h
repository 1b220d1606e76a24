// The kernel's interface as far as the launcher needs it, and the little of a C
// library that it uses.

#include <asm/unistd.h>
#include <asm/signal.h>
#include <asm/errno.h>
#include <linux/sched.h>
#include <linux/prctl.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <asm/mman.h>

typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned short u16;

#define SYS_sendto __NR_sendto
#define SYS_exit_group __NR_exit_group
#define SYS_wait4 __NR_wait4
#define SYS_waitid __NR_waitid
#define SYS_signalfd4 __NR_signalfd4
#define SYS_rt_sigtimedwait __NR_rt_sigtimedwait
#define SYS_rt_sigprocmask __NR_rt_sigprocmask
#define SYS_rt_sigaction __NR_rt_sigaction
#define SYS_clone __NR_clone
#define SYS_close __NR_close
#define SYS_close_range __NR_close_range
#define SYS_kill __NR_kill
#define SYS_unshare __NR_unshare
#define SYS_setns __NR_setns
#define SYS_getpid __NR_getpid
#define SYS_getppid __NR_getppid
#define SYS_munmap __NR_munmap
#define SYS_mmap __NR_mmap
#define SYS_recvmsg __NR_recvmsg
#define SYS_read __NR_read
#define SYS_write __NR_write
#define SYS_openat __NR_openat
#define SYS_socketpair __NR_socketpair
#define SYS_prctl __NR_prctl
#define SYS_ppoll __NR_ppoll
#define SYS_pidfd_open __NR_pidfd_open
#define SYS_msgctl __NR_msgctl
#define SYS_getrandom __NR_getrandom
#define SYS_semctl __NR_semctl
#define SYS_shmctl __NR_shmctl

#define MSG_CTRUNC 0x08
#define MSG_TRUNC 0x20
#define MSG_WAITALL 0x100
#define MSG_NOSIGNAL 0x4000
#define MSG_CMSG_CLOEXEC 0x40000000
#define AF_UNIX 1
#define SOCK_STREAM 1
#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define POLLIN 1
#define IPC_RMID 0
#define MSG_INFO 12
#define MSG_STAT_ANY 13
#define SEM_INFO 19
#define SEM_STAT_ANY 20
#define SHM_INFO 14
#define SHM_STAT_ANY 15
#define WNOHANG 1
#define WEXITED 4
#define WNOWAIT 0x01000000
#define P_ALL 0

struct iovec {
	void *base;
	u64 len;
};

struct msghdr {
	void *name;
	u32 namelen;
	u32 pad;
	struct iovec *iov;
	u64 iovlen;
	void *control;
	u64 controllen;
	u32 flags;
};

struct cmsghdr {
	u64 len;
	int level, type;
};

struct pollfd {
	int fd;
	short events, revents;
};

struct duration {
	long sec, usec;
};

struct rusage {
	struct duration utime, stime;
	long rest[14];
};

#if defined(__x86_64__)
static inline long sys(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}

// spawn begins a process that does what(with) on a stack that ends at top, and never returns
// from that. The call has a sixth argument, for a filter.
static inline long spawn(u64 flags, char *top, void (*what)(void *), void *with, u64 sixth)
{
	u64 *sp = (u64 *)top - 2;
	long r;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	register long r9 __asm__("r9") = (long)sixth;
	sp[0] = (u64)what, sp[1] = (u64)with;
	__asm__ volatile("syscall\n\ttest %%eax, %%eax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tpop %%rax\n\tpop %%rdi\n\tcall *%%rax\n\tud2\n1:"
			 : "=a"(r) : "a"(SYS_clone), "D"(flags), "S"(sp), "d"(0), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall begin\n");
#elif defined(__aarch64__)
static inline long sys(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

static inline long spawn(u64 flags, char *top, void (*what)(void *), void *with, u64 sixth)
{
	u64 *sp = (u64 *)top - 2;
	register long x8 __asm__("x8") = SYS_clone;
	register long x0 __asm__("x0") = (long)flags;
	register long x1 __asm__("x1") = (long)sp;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register long x5 __asm__("x5") = (long)sixth;
	sp[0] = (u64)what, sp[1] = (u64)with;
	__asm__ volatile("svc 0\n\tcbnz x0, 1f\n\tmov x29, #0\n\tldp x1, x0, [sp], #16\n\tblr x1\n\tbrk #0\n1:"
			 : "+r"(x0), "+r"(x1) : "r"(x8), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tbl begin\n");
#else
#error "the launcher is not written for this architecture"
#endif

// The compiler calls these three by itself.
void *memset(void *to, int c, u64 n)
{
	for (char *p = to; n--;)
		*p++ = (char)c;
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, u64 n)
{
	char *t = to;
	for (const char *f = from; n--;)
		*t++ = *f++;
	return to;
}

int memcmp(const void *a, const void *b, u64 n)
{
	for (const unsigned char *x = a, *y = b; n--; x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

static u64 length(const char *s)
{
	u64 n = 0;
	while (s[n])
		n++;
	return n;
}

// put appends a text, and put_number a number; both leave it terminated.
static char *put(char *to, const char *s)
{
	while ((*to = *s++))
		to++;
	return to;
}

static char *put_number(char *to, long n)
{
	char digits[20];
	int k = 0;
	do
		digits[k++] = '0' + n % 10;
	while (n /= 10);
	while (k)
		*to++ = digits[--k];
	*to = 0;
	return to;
}
