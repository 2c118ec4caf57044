package seccomp

import "strings"

func words(text string) []string { return strings.Fields(text) }

// tracingCalls read and change other processes.
var tracingCalls = words("ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp process_madvise")

// denied is what exists and is refused: it changes the machine, makes name spaces and mounts, opens files by number
// instead of path, or has been the way out of sandboxes again and again (bpf, io_uring, userfaultfd, keys).
const denied = `
	mount umount2 pivot_root open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr
	setns unshare chroot
	bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key
	open_by_handle_at name_to_handle_at quotactl quotactl_fd swapon swapoff reboot kexec_load kexec_file_load
	init_module finit_module delete_module create_module acct settimeofday clock_settime clock_adjtime adjtimex
	iopl ioperm lookup_dcookie nfsservctl syslog fanotify_init fanotify_mark vhangup
	sethostname setdomainname move_pages migrate_pages process_mrelease`

// allowed is what programs need.
const allowed = `
	read write close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
	pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise shmget shmat shmctl dup
	dup2 pause nanosleep getitimer alarm setitimer getpid sendfile connect accept sendto recvfrom sendmsg recvmsg
	shutdown bind listen getsockname getpeername setsockopt getsockopt fork vfork execve exit wait4 kill uname semget
	semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd
	chdir fchdir rename mkdir rmdir link unlink symlink readlink chown fchown lchown umask gettimeofday getrlimit
	getrusage sysinfo times getuid getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid
	setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget
	capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime statfs fstatfs getpriority
	setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max
	sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall prctl arch_prctl setrlimit sync
	gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
	removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat removexattrat tkill time futex
	sched_setaffinity sched_getaffinity set_thread_area get_thread_area io_setup io_destroy io_getevents io_submit
	io_cancel io_pgetevents epoll_create remap_file_pages getdents64 set_tid_address restart_syscall semtimedop
	fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime clock_getres
	clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes mbind set_mempolicy get_mempolicy
	set_mempolicy_home_node mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr waitid ioprio_set
	ioprio_get inotify_init inotify_add_watch inotify_rm_watch mkdirat fchownat futimesat newfstatat fstatat unlinkat
	renameat linkat symlinkat readlinkat faccessat faccessat2 pselect6 ppoll set_robust_list get_robust_list splice
	tee sync_file_range vmsplice utimensat epoll_pwait epoll_pwait2 signalfd timerfd_create eventfd fallocate
	timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev
	preadv2 pwritev2 rt_tgsigqueueinfo recvmmsg prlimit64 syncfs sendmmsg getcpu sched_setattr sched_getattr
	renameat2 seccomp getrandom memfd_create execveat membarrier mlock2 copy_file_range pkey_mprotect pkey_alloc
	pkey_free statx rseq uretprobe pidfd_send_signal pidfd_open close_range landlock_create_ruleset
	landlock_add_rule landlock_restrict_self futex_waitv futex_wake futex_wait futex_requeue cachestat
	map_shadow_stack mseal`
