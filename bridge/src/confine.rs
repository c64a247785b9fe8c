//! What a process takes from itself before it looks at what others wrote. Whatever the system refuses is left out: each
//! limit stands by itself, and the one who started the process watches its time.

use std::mem::offset_of;

/// The numbers of calls to memory, time, descriptors that are open, and one's own threads.
const ALLOWED_CALLS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_ppoll,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// How the kernel names the architecture of a call; elsewhere calls are not filtered.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

fn set_limit(what: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: reads `limit` alone.
    unsafe { libc::setrlimit(what, &limit) };
}

/// Memory as given; no files, no core, no new privileges; Ctrl-C and SIGTERM are for others. Under pressure, the system
/// ends this process first.
pub fn limit(address_space: u64) {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // SAFETY: changes limits and signals of this process alone.
    unsafe {
        libc::close(1);
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    set_limit(libc::RLIMIT_AS, address_space);
    set_limit(libc::RLIMIT_CORE, 0);
    set_limit(libc::RLIMIT_FSIZE, 0);
    set_limit(libc::RLIMIT_NOFILE, 3);
}

const fn statement(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Skips so many statements where what was loaded is `value`, or else where it is not.
const fn jump(value: u32, if_equal: u8, if_not: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: if_equal, jf: if_not, k: value }
}

/// This thread's further system calls fail, but for those that are allowed. REQUIRES: `limit` went before.
pub fn filter_system_calls() {
    let Some(architecture) = ARCHITECTURE else { return };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let refuse = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let mut program = vec![
        statement(load, offset_of!(libc::seccomp_data, arch) as u32),
        jump(architecture, 1, 0),
        refuse,
        statement(load, offset_of!(libc::seccomp_data, nr) as u32),
    ];
    for (i, call) in ALLOWED_CALLS.iter().enumerate() {
        program.push(jump(*call as u32, (ALLOWED_CALLS.len() - i) as u8, 0));
    }
    program.push(refuse);
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: reads the program alone.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
}

/// The most memory that this process ever had.
pub fn peak_bytes() -> usize {
    // SAFETY: all zeros are a value of it; the call writes to it alone.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    (usage.ru_maxrss as usize) << 10
}

/// Returns when the other end of a socket closes.
pub fn wait_for_close(descriptor: i32) {
    filter_system_calls();
    let mut watched = libc::pollfd { fd: descriptor, events: 0, revents: 0 };
    // SAFETY: one element, as told. Without a timeout, only an interruption returns 0 or less.
    while unsafe { libc::ppoll(&mut watched, 1, std::ptr::null(), std::ptr::null()) } <= 0 {}
}

pub fn end() -> ! {
    // SAFETY: ends the process at once; nothing has to be written or freed.
    unsafe { libc::_exit(0) }
}
