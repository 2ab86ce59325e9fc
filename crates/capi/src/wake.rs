//! The descriptor that is readable while events may be pending: an eventfd, on Linux and Android.

use crate::error::Failure;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use eventfd::Wake;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use none::Wake;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod eventfd {
    use super::Failure;
    use crate::error::ACKLINE_EIO;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fd::{AsRawFd, OwnedFd};

    /// Created on first use, so a program that only polls has no descriptor.
    #[derive(Debug, Default)]
    pub(crate) struct Wake {
        fd: Option<OwnedFd>,
        set: bool,
    }

    impl Wake {
        /// The descriptor.
        pub(crate) fn fd(&mut self) -> Result<i32, Failure> {
            if let Some(fd) = &self.fd {
                return Ok(fd.as_raw_fd());
            }
            let made = eventfd(u32::from(self.set), EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
            let fd = made.map_err(|errno| {
                Failure::new(ACKLINE_EIO, format!("could not create an eventfd: {errno}"))
            })?;
            Ok(self.fd.insert(fd).as_raw_fd())
        }

        /// Makes it readable or not readable. A system call only on a change.
        pub(crate) fn set(&mut self, set: bool) {
            if self.set == set {
                return;
            }
            self.set = set;
            let Some(fd) = &self.fd else { return };
            // Neither can fail or block: the count is 0 or 1, unless the program has read or
            // written the descriptor itself.
            let _count = if set {
                rustix::io::write(fd, &1u64.to_ne_bytes())
            } else {
                rustix::io::read(fd, &mut [0; 8])
            };
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod none {
    use super::Failure;
    use crate::error::ACKLINE_EOPNOTSUPP;

    /// Without eventfd there is no descriptor.
    #[derive(Debug, Default)]
    pub(crate) struct Wake {}

    impl Wake {
        pub(crate) fn fd(&mut self) -> Result<i32, Failure> {
            Err(Failure::new(ACKLINE_EOPNOTSUPP, "a descriptor for events needs eventfd: Linux or Android"))
        }

        pub(crate) fn set(&mut self, _set: bool) {}
    }
}
