//! What goes wrong with a stack.

use std::io;

/// An error of the stack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IpStackError {
    /// The stack has ended: its device is gone.
    #[error("the stack has ended")]
    AcceptError,
    /// The device, or the operating system.
    #[error("{0}")]
    IoError(#[from] io::Error),
    /// RFC 8200, section 5, requires 1,280 bytes.
    #[error("an MTU of {0} bytes is below IPv6's least, 1280")]
    InvalidMtuSize(u16),
}

impl From<IpStackError> for io::Error {
    fn from(error: IpStackError) -> Self {
        match error {
            IpStackError::IoError(error) => error,
            IpStackError::AcceptError => Self::new(io::ErrorKind::NotConnected, error),
            IpStackError::InvalidMtuSize(_) => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// The result of an operation of the stack.
pub type Result<T, E = IpStackError> = std::result::Result<T, E>;
