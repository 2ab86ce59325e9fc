//! What `send` reads: a file or standard input, in chunks, one ahead of the network. The connection
//! shares them.

use crate::failure::{Exit, Failure};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Bytes that one read asks for; the next read runs while these are being sent.
const CHUNK: usize = 256 << 10;

/// An open file or standard input.
pub(crate) struct Source {
    file: Arc<File>,
    name: String,
    size: Option<u64>,
}

impl Source {
    /// Opens `path`; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let name = "standard input".to_owned();
            let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
            let file = file.map_err(|error| Failure::file("read", &name, &error))?;
            let size = regular_size(&file);
            return Ok(Self { file: Arc::new(file), name, size });
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Failure::file("read", &name, &error))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(Failure::new(
                Exit::File,
                format!("{name} is a directory (tar c {name} | ackline send - ...)"),
            ));
        }
        let size = regular_size(&file);
        Ok(Self { file: Arc::new(file), name, size })
    }

    /// What to call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its size, if it has one.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }
}

/// The size of a regular file from its current position; standard input may be one, half read.
fn regular_size(file: &File) -> Option<u64> {
    use std::io::Seek as _;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut file = file;
    let position = file.stream_position().ok()?;
    Some(metadata.len().saturating_sub(position))
}

/// A source in chunks.
pub(crate) struct Chunks {
    source: Source,
    ahead: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Chunks {
    /// Begins to read.
    pub(crate) fn of(source: Source) -> Self {
        let mut chunks = Self { source, ahead: None };
        chunks.read_ahead();
        chunks
    }

    /// The next chunk; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(ahead) = self.ahead.take() else { return Ok(None) };
        match ahead.await.unwrap_or_else(|lost| Err(lost.into())) {
            Ok(chunk) if chunk.is_empty() => Ok(None),
            Ok(chunk) => {
                self.read_ahead();
                Ok(Some(chunk))
            }
            Err(error) => Err(Failure::file("read", &self.source.name, &error)),
        }
    }

    fn read_ahead(&mut self) {
        let file = self.source.file.clone();
        self.ahead = Some(tokio::task::spawn_blocking(move || {
            let mut buffer = Vec::with_capacity(CHUNK);
            retry_on_intr(|| rustix::io::read(&*file, spare_capacity(&mut buffer)))?;
            // What a pipe had: the connection is not to hold the rest.
            buffer.shrink_to_fit();
            Ok(buffer.into())
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_comes_whole_and_in_order() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let data: Vec<u8> = (0..3 * CHUNK + 17).map(|i| (i / 7) as u8).collect();
        file.write_all(&data).expect("written");
        let source = Source::open(file.path()).expect("opened");
        assert_eq!(source.size(), Some(data.len() as u64));
        let runtime = crate::network::tunnel::runtime().expect("a runtime");
        let read = runtime.block_on(async {
            let mut chunks = Chunks::of(source);
            let mut read = Vec::new();
            while let Some(chunk) = chunks.next().await.expect("readable") {
                read.extend_from_slice(&chunk);
            }
            read
        });
        assert!(read == data);
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        let missing = Source::open(Path::new("/no/such/file")).err().expect("missing");
        assert_eq!(missing.exit, Exit::File);
        assert_eq!(missing.to_string(), "cannot read /no/such/file: no such file or directory");
        let directory = Source::open(Path::new("/")).err().expect("a directory");
        assert!(directory.to_string().contains("is a directory"), "{directory}");
    }
}
