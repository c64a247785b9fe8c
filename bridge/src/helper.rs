//! The program `candor_helper`: templates, constraints and images where their time and memory hurt nobody. `include/candor_helper.h`
//! is its contract.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use crate::confine;
use crate::constraint::tok_env::{self, TokEnvironment};
use crate::constraint::{self, Kind};
use crate::error::{Error, Result, Status};
use crate::guard::{catch, STACK_BYTES};
use crate::image;
use crate::memory;
use crate::template::Template;

const N_SLOTS: usize = 8;
const JOB_BYTES: usize = 256 << 20;
const IMAGE_JOB_BYTES: usize = 1 << 30;
const MAX_FRAME_BYTES: usize = 80 << 20;
/// A reply of at most so much is written at once.
const SMALL_BYTES: usize = 64 << 10;
/// Beyond the vocabularies and templates that are kept: what a library in C takes is counted by nothing else.
const ADDRESS_SPACE: u64 = 2 << 30;
/// A stack or a heap that once was larger by so much stays so.
const WORN_BYTES: usize = 96 << 20;
const SPECIAL: u32 = 1 << 31;

const TEMPLATE: u8 = 1;
const VOCABULARY: u8 = 2;
const RENDER: u8 = 3;
const CONSTRAINT: u8 = 4;
const IMAGE: u8 = 5;

struct Request {
    kind: u8,
    slot: usize,
    detail: u8,
    bytes: Vec<u8>,
}

enum Held {
    Template(Box<Template>),
    Vocabulary(Box<TokEnvironment>),
}

/// Of a job that was done. A picture's size stands before its pixels, in bytes of their own: they are not copied.
struct Reply {
    size: Option<[u32; 2]>,
    bytes: Vec<u8>,
}

impl From<String> for Reply {
    fn from(text: String) -> Reply {
        Reply { size: None, bytes: text.into_bytes() }
    }
}

/// The other end.
struct Peer(ManuallyDrop<File>);

impl Peer {
    fn of(descriptor: i32) -> Peer {
        // SAFETY: never closed by this; nothing else here uses the descriptor.
        Peer(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
    }

    fn read(&mut self) -> io::Result<Request> {
        let mut head = [0u8; 8];
        self.0.read_exact(&mut head)?;
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if size > MAX_FRAME_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        memory::end_process_beyond(if head[4] == IMAGE { IMAGE_JOB_BYTES } else { JOB_BYTES });
        let mut bytes = vec![0; size];
        self.0.read_exact(&mut bytes)?;
        Ok(Request { kind: head[4], slot: head[5] as usize, detail: head[6], bytes })
    }

    fn write(&mut self, result: Result<Reply>, is_worn: bool) -> io::Result<()> {
        let (status, line, reply) = match result {
            Ok(reply) => (Status::Ok, 0, reply),
            Err(error) => (error.status, error.line, error.message.into()),
        };
        let mut head = vec![0u8; 12];
        head.extend(reply.size.iter().flatten().flat_map(|side| side.to_le_bytes()));
        let n_bytes = head.len() - 12 + reply.bytes.len();
        head[..4].copy_from_slice(&(n_bytes as u32).to_le_bytes());
        head[4] = status as u8;
        head[5] = u8::from(is_worn);
        head[8..12].copy_from_slice(&line.to_le_bytes());
        if n_bytes <= SMALL_BYTES {
            return self.0.write_all(&[head, reply.bytes].concat());
        }
        self.0.write_all(&head)?;
        self.0.write_all(&reply.bytes)
    }
}

fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| Error::invalid(format!("{what} is not UTF-8 at byte {}", e.valid_up_to())))
}

/// Reads little-endian numbers and bytes off the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n).ok_or_else(|| Error::internal("a request ends early"))?;
        self.0 = rest;
        Ok(front)
    }

    fn number(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

fn vocabulary(bytes: &[u8]) -> Result<TokEnvironment> {
    let mut cursor = Cursor(bytes);
    let (n_tokens, n_ends) = (cursor.number()?, cursor.number()?);
    let ends = (0..n_ends).map(|_| cursor.number()).collect::<Result<Vec<_>>>()?;
    let (mut words, mut is_special) = (Vec::new(), Vec::new());
    for _ in 0..n_tokens {
        let size = cursor.number()?;
        is_special.push(size & SPECIAL != 0);
        words.push(cursor.take((size & !SPECIAL) as usize)?);
    }
    tok_env::new(&words, &is_special, &ends)
}

#[derive(Default)]
struct Helper {
    slots: [Option<Held>; N_SLOTS],
    /// The most memory that this process had when a slot was last filled.
    settled_bytes: usize,
}

impl Helper {
    fn keep(&mut self, slot: usize, make: impl FnOnce() -> Result<Held>) -> Result<Reply> {
        let place = self.slots.get_mut(slot).ok_or_else(|| Error::internal(format!("there is no slot {slot}")))?;
        *place = None;
        *place = Some(make()?);
        self.settled_bytes = confine::peak_bytes();
        Ok(String::new().into())
    }

    fn answer(&mut self, request: &Request) -> Result<Reply> {
        let bytes = request.bytes.as_slice();
        match (request.kind, self.slots.get(request.slot).and_then(Option::as_ref)) {
            (TEMPLATE, _) => {
                self.keep(request.slot, || Ok(Held::Template(Box::new(Template::compile(text(bytes, "template")?)?))))
            }
            (VOCABULARY, _) => self.keep(request.slot, || Ok(Held::Vocabulary(Box::new(vocabulary(bytes)?)))),
            (RENDER, Some(Held::Template(template))) => {
                let mut cursor = Cursor(bytes);
                let now = cursor.take(8)?.try_into().map(i64::from_le_bytes).unwrap_or(0);
                template.render(text(cursor.0, "template context")?, now).map(Reply::from)
            }
            (CONSTRAINT, Some(Held::Vocabulary(env))) => {
                let kind = Kind::of(i32::from(request.detail))?;
                let source = if kind == Kind::JsonObject { "" } else { text(bytes, "constraint")? };
                constraint::rehearse(env, kind, source).map(|()| String::new().into())
            }
            (IMAGE, _) => {
                let pixels = image::decode(bytes)?;
                Ok(Reply { size: Some([pixels.width, pixels.height]), bytes: pixels.rgb })
            }
            (kind, _) => Err(Error::internal(format!("a helper has nothing for a request of kind {kind}"))),
        }
    }

    fn serve(mut self, mut peer: Peer) -> io::Result<()> {
        self.settled_bytes = confine::peak_bytes();
        peer.write(Ok(String::new().into()), false)?;
        loop {
            let request = peer.read()?;
            let result = catch(|| self.answer(&request));
            drop(request);
            peer.write(result, confine::peak_bytes() > self.settled_bytes + WORN_BYTES)?;
        }
    }
}

/// Serves descriptor 0 until its other end closes.
pub fn run() {
    confine::limit(ADDRESS_SPACE + STACK_BYTES as u64);
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| {
        confine::filter_system_calls();
        let _ = Helper::default().serve(Peer::of(0));
        confine::end();
    });
    if worker.is_ok() {
        confine::wait_for_close(0);
    }
    confine::end();
}

/// `run` for a program that is not linked by cargo (packaging/portable/helper.c).
#[no_mangle]
pub extern "C" fn candor_helper_run() {
    run();
}
