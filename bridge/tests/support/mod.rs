//! Processor time, so that no test depends on the machine's load, and the program `candor_helper` as its owner sees it: one
//! that is killed when it works for more than 2 s.
#![allow(dead_code)] // each test program uses a part

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use candor_bridge::constraint::tok_env::TokEnvironment;
use candor_bridge::constraint::{rehearse, Kind};
use candor_bridge::guard::on_large_stack;
use candor_bridge::Error;

const WORK_LIMIT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// Processor time of the thread that calls.
pub fn thread_time() -> Duration {
    clock_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// `f` on the stack that it needs, with the processor time that it took: a thread that has ended cannot be asked.
pub fn timed<T: Send>(f: impl FnOnce() -> Result<T, Error> + Send) -> (Result<T, Error>, Duration) {
    let mut took = Duration::ZERO;
    let outcome = on_large_stack(|| {
        let begin = thread_time();
        let outcome = f();
        took = thread_time() - begin;
        outcome
    });
    (outcome, took)
}

/// All that compiling does, timed.
pub fn rehearsed(env: &TokEnvironment, kind: Kind, source: &str) -> (Result<(), Error>, Duration) {
    timed(|| rehearse(env, kind, source))
}

pub struct Helper {
    child: Child,
    socket: UnixStream,
}

#[derive(Debug)]
pub enum Answer {
    Done(String),
    /// A status of `candor_status`, and the message.
    Refused(u8, String),
    WorkedTooLong,
    Ended(ExitStatus),
}

impl Answer {
    /// It refused, or ended by a limit.
    pub fn is_limit(&self) -> bool {
        match self {
            Answer::Done(_) => false,
            Answer::Refused(status, _) => *status == candor_bridge::Status::Limit as u8,
            Answer::WorkedTooLong => true,
            Answer::Ended(status) => status.code() == Some(77) || status.signal() == Some(libc::SIGABRT),
        }
    }
}

impl Helper {
    pub fn start() -> Helper {
        let (socket, its) = UnixStream::pair().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_candor_helper")).stdin(Stdio::from(OwnedFd::from(its))).spawn().unwrap();
        let mut helper = Helper { child, socket };
        assert!(matches!(helper.answer(), Answer::Done(hello) if hello.is_empty()));
        helper
    }

    pub fn ask(&mut self, kind: u8, detail: u8, bytes: &[u8]) -> Answer {
        let head = [&(bytes.len() as u32).to_le_bytes()[..], &[kind, 0, detail, 0]].concat();
        self.socket.write_all(&head).and_then(|()| self.socket.write_all(bytes)).unwrap();
        self.answer()
    }

    pub fn render(&mut self, source: &str, context: &str) -> Answer {
        match self.ask(1, 0, source.as_bytes()) {
            Answer::Done(_) => self.ask(3, 0, &[&[0; 8], context.as_bytes()].concat()),
            other => other,
        }
    }

    /// The 256 bytes and an end.
    pub fn send_byte_vocabulary(&mut self) {
        let mut bytes = [257u32, 1, 256].map(u32::to_le_bytes).concat();
        for byte in 0..=255u8 {
            bytes.extend(1u32.to_le_bytes());
            bytes.push(byte);
        }
        bytes.extend((1u32 << 31).to_le_bytes());
        assert!(matches!(self.ask(2, 0, &bytes), Answer::Done(_)));
    }

    pub fn work_time(&self) -> Duration {
        let mut clock = 0;
        assert_eq!(unsafe { libc::clock_getcpuclockid(self.child.id() as i32, &mut clock) }, 0);
        clock_time(clock)
    }

    fn answer(&mut self) -> Answer {
        let begin = self.work_time();
        let (mut worked, mut worked_last) = (begin, Instant::now());
        self.socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut head = [0u8; 12];
        loop {
            match self.socket.receive(&mut head) {
                Some(true) => break,
                Some(false) => return Answer::Ended(self.child.wait().unwrap()),
                None if self.work_time() > begin + WORK_LIMIT => return Answer::WorkedTooLong,
                None if self.work_time() > worked => (worked, worked_last) = (self.work_time(), Instant::now()),
                None => assert!(worked_last.elapsed() < PATIENCE, "neither works nor answers"),
            }
        }
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = vec![0; u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize];
        self.socket.read_exact(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        if head[4] == 0 {
            Answer::Done(text)
        } else {
            Answer::Refused(head[4], text)
        }
    }
}

trait Receive {
    /// True: filled. False: closed. None: not yet.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<bool>;
}

impl Receive for UnixStream {
    fn receive(&mut self, buffer: &mut [u8]) -> Option<bool> {
        match self.read(buffer) {
            Ok(0) => Some(false),
            Ok(n) => {
                self.read_exact(&mut buffer[n..]).unwrap();
                Some(true)
            }
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => Some(false),
            Err(_) => None,
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
