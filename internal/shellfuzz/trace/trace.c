// A library that is loaded into bash before anything else and makes of it an oracle: it serves command texts to a bash
// that is forked when it is about to read its -c argument (to a zsh, before it begins), and stands where programs would start. Nothing is ever
// started: execve writes down what would be, behaves like a small filter, and ends. The few programs that only start
// others (env, nice, xargs, shells) are real, with this library in them.
//
// It is part of the tests of package shell and of nothing else.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FD_NULL = 196,    // the real /dev/null
	FD_REQUEST = 197, // one byte: run the text in shared memory
	FD_ANSWER = 198,  // eight bytes: wait status, flags
	FD_SHARED = 199,
	SHARED_SIZE = 1 << 20,
	TEXT_SIZE = 1 << 17, // the text comes first, then the log
	COPY_LIMIT = 1 << 16,
	MAX_FORKS = 200,
	PATIENCE = 4000,     // times half a millisecond: how long processes may outlive bash
};

enum { TIMED_OUT = 1, LEFT_RUNNING = 2 };

struct shared {
	uint32_t text_length, used, forks, overflow, calls, process, deadline_ms, reserved;
	char text[TEXT_SIZE];
	char log[];
};

static struct shared *shared;
static char *marker; // the -c argument that each text takes the place of
static uint32_t calls;
static enum { IDLE, COUNTS, SERVES, RUNS } serving;
extern char **environ;

static pid_t (*real_fork)(void);
static pid_t (*real_waitpid)(pid_t, int *, int);

// --- the log: records of a length, a kind and NUL-terminated strings or fixed-size numbers

struct record {
	char *at, *end;
};

static size_t strings_size(char *const *list) {
	size_t n = 4;
	for (; list && *list; list++) n += (strlen)(*list) + 1;
	return n;
}

static struct record record(char kind, size_t size) {
	struct record r = {0};
	size += 4 + 1 + 4 + 4;
	if (!shared) return r;
	uint32_t at = __atomic_fetch_add(&shared->used, size, __ATOMIC_SEQ_CST);
	if (at + size > SHARED_SIZE - sizeof *shared) {
		shared->overflow = 1;
		return r;
	}
	uint32_t length = size, pid = getpid(), ppid = getppid();
	r.at = shared->log + at;
	r.end = r.at + size;
	memcpy(r.at, &length, 4), r.at += 4;
	*r.at++ = kind;
	memcpy(r.at, &pid, 4), r.at += 4;
	memcpy(r.at, &ppid, 4), r.at += 4;
	return r;
}

static void put(struct record *r, const void *data, size_t n) {
	if (r->at && r->at + n <= r->end) memcpy(r->at, data, n), r->at += n;
}

static void put_string(struct record *r, const char *s) { put(r, s, (strlen)(s) + 1); }

static void put_strings(struct record *r, char *const *list) {
	uint32_t n = 0;
	for (char *const *p = list; p && *p; p++) n++;
	put(r, &n, 4);
	for (; n; n--) put_string(r, *list++);
}

static void put_descriptor(struct record *r, int fd) {
	struct stat st = {0};
	uint64_t v[3] = {0};
	if (syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) == 0) v[0] = st.st_dev, v[1] = st.st_ino, v[2] = st.st_mode;
	put(r, v, sizeof v);
}

// --- programs

static void write_all(int fd, const char *data, size_t n) {
	while (n > 0) {
		ssize_t w = write(fd, data, n);
		if (w <= 0) return;
		data += w, n -= w;
	}
}

static const char *base(const char *path) {
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

// filter is what every program does: says its name and arguments, and passes on what it reads. Its name gives its status.
static void filter(char *const argv[]) {
	static char in[COPY_LIMIT];
	signal(SIGPIPE, SIG_IGN); // its status must not depend on who reads
	size_t n = 0;
	ssize_t r;
	while (n < sizeof in && (r = read(0, in + n, sizeof in - n)) > 0) n += r;
	struct record log = record('I', 4 + n);
	uint32_t length = n;
	put(&log, &length, 4);
	put(&log, in, n);
	for (int i = 0; argv[i]; i++) {
		if (i) write_all(1, " ", 1);
		const char *word = i ? argv[i] : base(argv[i]);
		write_all(1, word, strlen(word));
	}
	write_all(1, "\n", 1);
	write_all(1, in, n);
	write_all(2, "!\n", 2);
	_exit(strstr(argv[0] ? argv[0] : "", "false") ? 1 : 0);
}

#ifdef FILTER
// The same as a program, for what is compared with bash and runs for real.
int main(int argc, char *argv[]) { filter(argv); }
#else

// starter finds the real program that only starts others, or does what a builtin does, and that may run therefore.
static const char *starter(const char *path) {
	static const char *names[] = {"env", "nice", "nohup", "stdbuf", "timeout", "xargs", "find", "bash", "sh", "dash",
		"true", "false", "echo", "pwd", "test", "[", 0};
	static char real[64];
	const char *name = base(path);
	size_t dir = name - path;
	if (!(dir == 5 && !strncmp(path, "/bin/", 5)) && !(dir == 9 && !strncmp(path, "/usr/bin/", 9))) return 0;
	for (const char **n = names; *n; n++)
		if (!strcmp(*n, name)) {
			strcpy(real, "/real/");
			strcat(real, name);
			return real;
		}
	return 0;
}

// runners start what stands behind the words that they begin with; git, what its settings say.
static const char *runners[][4] = {
	{"git", "bisect", "run"}, {"uv", "run"}, {"bundle", "exec"}, {"poetry", "run"}, {"pipenv", "run"}, {"pnpm", "exec"},
	{"rustup", "run", "stable"}, {0},
};

// carried is the command that a runner would start, or none.
static char *const *carried(const char *name, char *const argv[]) {
	static char *script[4] = {"sh", "-c"};
	for (int i = 0; runners[i][0]; i++) {
		if (strcmp(name, runners[i][0])) continue;
		int n = 1;
		while (n < 4 && runners[i][n] && argv[n] && !strcmp(argv[n], runners[i][n])) n++;
		if ((n == 4 || !runners[i][n]) && argv[n] && argv[n][0] != '-') return argv + n;
	}
	if (strcmp(name, "git") || !argv[1] || !argv[2] || !argv[3]) return 0;
	char *equals = strstr(argv[2], "=!");
	if (!strcmp(argv[1], "-c") && !strncmp(argv[2], "alias.", 6) && equals && !strncmp(argv[2] + 6, argv[3], equals - argv[2] - 6))
		return script[2] = equals + 2, script;
	if (!strcmp(argv[1], "submodule") && !strcmp(argv[2], "foreach")) return script[2] = argv[3], script;
	if (!strcmp(argv[1], "rebase") && !strcmp(argv[2], "--exec")) return script[2] = argv[3], script;
	return 0;
}

int execvpe(const char *file, char *const argv[], char *const envp[]);

static int start(const char *path, char *const argv[], char *const envp[]) {
	char cwd[4096] = "";
	if (!getcwd(cwd, sizeof cwd)) cwd[0] = 0;
	struct record r = record('X', 3 * 24 + strlen(path) + 1 + strlen(cwd) + 1 + strings_size(argv) + strings_size(envp));
	for (int fd = 0; fd < 3; fd++) put_descriptor(&r, fd);
	put_string(&r, path);
	put_string(&r, cwd);
	put_strings(&r, argv);
	put_strings(&r, envp);
	const char *real = starter(path);
	char *const *next = argv[0] ? carried(base(path), argv) : 0;
	if (!real && next) return execvpe(next[0], next, envp);
	if (!real) {
		syscall(SYS_close_range, 3, FD_NULL - 1, 0);
		filter(argv);
	}
	int n = 0;
	while (envp && envp[n]) n++;
	char **env = alloca((n + 3) * sizeof *env);
	env[0] = "LD_PRELOAD=/trace.so";
	env[1] = "TOOLWARD_TRACE=inner";
	int out = 2;
	for (int i = 0; i < n; i++)
		if (strncmp(envp[i], "LD_PRELOAD=", 11)) env[out++] = envp[i];
	env[out] = 0;
	syscall(SYS_execve, real, argv, env);
	_exit(125);
}

int execve(const char *path, char *const argv[], char *const envp[]) { return start(path, argv, envp); }
int execv(const char *path, char *const argv[]) { return start(path, argv, environ); }

// execvpe finds every name in /bin, the whole PATH.
int execvpe(const char *file, char *const argv[], char *const envp[]) {
	if (strchr(file, '/')) return start(file, argv, envp);
	char *path = alloca(strlen(file) + 6);
	strcpy(path, "/bin/");
	strcat(path, file);
	return start(path, argv, envp);
}
int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }

// A name without a slash below /bin is an executable file, whatever it is: every program that a text names is there.
static int in_bin(const char *path) {
	return path && !strncmp(path, "/bin/", 5) && path[5] && !strchr(path + 5, '/');
}

static int program_stat(const char *path, struct stat *st) {
	if (!in_bin(path)) return 0;
	memset(st, 0, sizeof *st);
	st->st_mode = S_IFREG | 0755;
	st->st_ino = 1, st->st_nlink = 1;
	return 1;
}

int stat(const char *path, struct stat *st) {
	if (program_stat(path, st)) return 0;
	return syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}
int stat64(const char *path, struct stat64 *st) { return stat(path, (struct stat *)st); }
int access(const char *path, int mode) { return in_bin(path) ? 0 : syscall(SYS_faccessat, AT_FDCWD, path, mode); }
int eaccess(const char *path, int mode) { return access(path, mode); }
int euidaccess(const char *path, int mode) { return access(path, mode); }
int faccessat(int dir, const char *path, int mode, int flags) {
	return in_bin(path) ? 0 : syscall(SYS_faccessat, dir, path, mode);
}

// --- files

static int logged_open(const char *path, int flags, mode_t mode) {
	int fd;
	if (!strcmp(path, "/dev/null"))
		fd = fcntl(FD_NULL, F_DUPFD, 3);
	else
		fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	int problem = errno;
	if (serving == RUNS) {
		uint32_t v[2] = {flags, fd < 0 ? problem : 0};
		char cwd[4096] = "";
		if (!getcwd(cwd, sizeof cwd)) cwd[0] = 0;
		struct record r = record('O', sizeof v + 24 + strlen(path) + 1 + strlen(cwd) + 1);
		put(&r, v, sizeof v);
		put_descriptor(&r, fd);
		put_string(&r, path);
		put_string(&r, cwd);
	}
	errno = problem;
	return fd;
}

int open(const char *path, int flags, ...) {
	va_list args;
	va_start(args, flags);
	mode_t mode = va_arg(args, int);
	va_end(args);
	return logged_open(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
	va_list args;
	va_start(args, flags);
	mode_t mode = va_arg(args, int);
	va_end(args);
	return logged_open(path, flags, mode);
}
int creat(const char *path, mode_t mode) { return logged_open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

// --- what a shell must not do here

int kill(pid_t pid, int sig) { return errno = EPERM, -1; }
int killpg(pid_t pid, int sig) { return errno = EPERM, -1; }
int socket(int domain, int type, int protocol) { return errno = EACCES, -1; }

// --- which process is whose, and how it ended

pid_t fork(void) {
	if (shared && serving == RUNS && __atomic_fetch_add(&shared->forks, 1, __ATOMIC_SEQ_CST) > MAX_FORKS)
		syscall(SYS_kill, 0, SIGKILL);
	pid_t child = real_fork();
	if (child > 0 && serving == RUNS) {
		uint32_t v = child;
		struct record r = record('F', sizeof v);
		put(&r, &v, sizeof v);
	}
	return child;
}
// A child that shares its parent's memory would write into it what it notes.
pid_t vfork(void) { return fork(); }

static pid_t ended(pid_t child, const int *status) {
	if (child > 0 && serving == RUNS && (WIFEXITED(*status) || WIFSIGNALED(*status))) {
		uint32_t v[2] = {child, *status};
		struct record r = record('W', sizeof v);
		put(&r, v, sizeof v);
	}
	return child;
}

pid_t waitpid(pid_t which, int *status, int options) {
	int own;
	if (!status) status = &own;
	return ended(real_waitpid(which, status, options), status);
}
pid_t wait(int *status) { return waitpid(-1, status, 0); }
pid_t wait4(pid_t which, int *status, int options, struct rusage *usage) {
	int own;
	if (!status) status = &own;
	long child = syscall(SYS_wait4, which, status, options, usage);
	return ended(child, status);
}
pid_t wait3(int *status, int options, struct rusage *usage) { return wait4(-1, status, options, usage); }

// --- the server

static void reap(int *flags) {
	for (int tries = 0;; tries++) {
		pid_t p = real_waitpid(-1, 0, WNOHANG);
		if (p < 0) return;
		if (p > 0) continue;
		if (tries == PATIENCE) { // as process 1 of its own namespace it can end all others
			syscall(SYS_kill, -1, SIGKILL);
			*flags |= LEFT_RUNNING;
		} else if (tries < PATIENCE)
			usleep(500);
		else
			usleep(100);
	}
}

static void serve(void) {
	char go;
	int flags, status;
	sigset_t child_ends, before;
	sigemptyset(&child_ends);
	sigaddset(&child_ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_ends, &before); // the handler of bash would take the child away
	for (;;) {
		if (read(FD_REQUEST, &go, 1) != 1) _exit(0);
		flags = status = 0;
		pid_t child = real_fork();
		if (child == 0) {
			setpgid(0, 0);
			serving = RUNS;
			sigprocmask(SIG_SETMASK, &before, 0);
			memcpy(marker, shared->text, shared->text_length);
			marker[shared->text_length] = 0;
			return;
		}
		shared->process = child;
		struct pollfd p = {.fd = syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
		while (poll(&p, 1, shared->deadline_ms) < 0 && errno == EINTR)
			;
		if (!(p.revents & POLLIN)) {
			flags |= TIMED_OUT;
			syscall(SYS_kill, -1, SIGKILL);
		}
		close(p.fd);
		while (real_waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		reap(&flags);
		int answer[2] = {status, flags};
		if (write(FD_ANSWER, answer, sizeof answer) != sizeof answer) _exit(0);
	}
}

// strlen is what bash calls last before it takes a copy of its -c argument. How many times it calls it before that is
// counted by a bash that runs an empty text first.
__attribute__((optimize("no-tree-loop-distribute-patterns"))) size_t strlen(const char *s) {
	if (s == marker && serving == COUNTS) shared->calls++;
	if (s == marker && serving == SERVES && --calls == 0) serve();
	const char *end = s;
	while (*end) end++;
	return end - s;
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
	const char *role = getenv("TOOLWARD_TRACE");
	if (!role) return;
	shared = mmap(0, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, FD_SHARED, 0);
	if (shared == MAP_FAILED) _exit(124);
	real_fork = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
	real_waitpid = (pid_t (*)(pid_t, int *, int))dlsym(RTLD_NEXT, "waitpid");
	marker = argv[argc - 1];
	calls = shared->calls;
	serving = !strcmp(role, "count") ? COUNTS : !strcmp(role, "server") ? SERVES : RUNS;
	int early = !strcmp(role, "early");
	// Programs must not see these two. (bash has an unsetenv of its own, which is not ready yet.)
	char **out = environ;
	for (char **in = environ; *in; in++)
		if (strncmp(*in, "LD_PRELOAD=", 11) && strncmp(*in, "TOOLWARD_TRACE=", 15)) *out++ = *in;
	*out = 0;
	if (early) serve(); // each child goes on to main, as a shell that has just been started with the text
}
#endif
