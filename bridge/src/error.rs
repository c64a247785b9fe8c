//! The one error type that crosses the C boundary.

/// Numbers are part of the C interface (`enum candor_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    Ok = 0,
    /// The input is wrong, and the message says where.
    Invalid = 1,
    /// The template called `raise_exception`; the message is the template's own.
    Raised = 2,
    /// A limit on size, depth, work or time was met.
    Limit = 3,
    /// The input may be right but asks for what is not implemented; it is refused, never dropped.
    Unsupported = 4,
    /// A fault of this library or one below it.
    Internal = 5,
    /// Others take what this would need; later it may be done.
    Busy = 6,
}

#[derive(Clone, Debug)]
pub struct Error {
    pub status: Status,
    /// 1-based line of a template; 0 where there is none.
    pub line: u32,
    pub message: String,
}

impl Error {
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, line: 0, message: one_line(message.into()) }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::Invalid, message)
    }

    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Status::Limit, message)
    }

    pub fn too_deep(what: &str, limit: usize, at: usize) -> Self {
        Self::limit(format!("{what} is nested deeper than {limit} (at byte {at})"))
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Status::Unsupported, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Status::Internal, message)
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Libraries below break their messages over lines.
fn one_line(text: String) -> String {
    if !text.contains(['\n', '\r']) {
        return text;
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `text` cut to at most `max_bytes` at a character boundary, for messages that quote input.
pub fn clip(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_string();
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}
