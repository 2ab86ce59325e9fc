//! The files of a capture. A file always ends with a whole block: if it cannot be written, its last packets make room for
//! the block that says so.

use super::{CaptureOptions, CaptureSummary, CutShort};
use crate::pcapng::{Blocks, LinkType, Packet, Statistics};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Bytes that are written at once, and at most a packet more. A disk that is full then costs as much.
const CHUNK: usize = 32 << 10;
/// Room for the last block of a file, which says what was counted.
const LAST_BLOCK: u64 = 512;

/// The files.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    options: CaptureOptions,
    current: Output,
    /// Begun so far.
    count: u32,
    /// Those to delete when there are too many, oldest first.
    kept: VecDeque<PathBuf>,
    /// Packets written to all files.
    packets: u64,
    /// Packets that were lost before they came here.
    dropped: u64,
    /// Packets that came, and are not in a file.
    unwritten: u64,
    last_at_ns: u64,
    cut_short: Option<CutShort>,
}

/// A file that is being written.
#[derive(Debug)]
struct Output {
    file: File,
    blocks: Blocks,
    /// Where each packet in `blocks` begins.
    starts: Vec<usize>,
    /// Bytes that are in the file.
    written: u64,
    /// Where a packet begins behind which there is room for the last block, and the number of packets before it.
    safe: (u64, u64),
    /// Packets in the file.
    packets: u64,
}

impl Output {
    fn create(path: &Path, options: &CaptureOptions) -> io::Result<Self> {
        let mut blocks = Blocks::default();
        blocks.section(&options.comment);
        blocks.interface(&options.interface, LinkType::Raw, options.snap_length.map(u32::from));
        let mut file = File::create(path)?;
        file.write_all(blocks.as_bytes())?;
        let written = blocks.len() as u64;
        blocks.clear();
        Ok(Self { file, blocks, starts: vec![], written, safe: (written, 0), packets: 0 })
    }

    fn len(&self) -> u64 {
        self.written + self.blocks.len() as u64
    }

    /// Adds a packet, unless the file would then have more than `limit` bytes.
    fn packet(&mut self, packet: &Packet<'_>, limit: u64) -> bool {
        self.blocks.packet(packet);
        if self.len() + LAST_BLOCK > limit {
            self.blocks.remove_last();
            return false;
        }
        self.starts.push(self.blocks.last());
        true
    }

    /// Writes what is there.
    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(self.blocks.as_bytes())?;
        let end = self.len();
        let after = self.starts.iter().rposition(|start| self.written + *start as u64 + LAST_BLOCK <= end);
        if let Some(index) = after {
            self.safe = (self.written + self.starts[index] as u64, self.packets + index as u64);
        }
        self.packets += self.starts.len() as u64;
        self.written = end;
        self.blocks.clear();
        self.starts.clear();
        Ok(())
    }

    /// Takes back the last packets, so that there is room for a last block on a full disk.
    fn make_room(&mut self) -> io::Result<()> {
        let (end, packets) = self.safe;
        self.blocks.clear();
        self.starts.clear();
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::Start(end))?;
        (self.written, self.packets) = (end, packets);
        Ok(())
    }

    /// Writes the last block.
    fn end(&mut self, at_ns: u64, counted: Statistics, comment: &str) -> io::Result<()> {
        self.blocks.statistics(0, at_ns, counted, comment);
        self.flush()
    }
}

impl Files {
    pub(super) fn create(path: PathBuf, options: CaptureOptions) -> io::Result<Self> {
        let first = numbered(&path, &options, 1);
        let current = Output::create(&first, &options)?;
        Ok(Self {
            path,
            options,
            current,
            count: 1,
            kept: [first].into(),
            packets: 0,
            dropped: 0,
            unwritten: 0,
            last_at_ns: 0,
            cut_short: None,
        })
    }

    /// `packets` were lost before they came here.
    pub(super) const fn lost(&mut self, packets: u64) {
        self.dropped += packets;
    }

    /// Adds a packet.
    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        self.last_at_ns = self.last_at_ns.max(packet.at_ns);
        let limit = self.options.file_size.map_or(u64::MAX, u64::from);
        if self.cut_short.is_none() && !self.current.packet(packet, limit) {
            self.flush();
            if self.cut_short.is_none() {
                match self.rotate() {
                    Ok(true) if self.current.packet(packet, limit) => return,
                    Ok(_) => self.cut(CutShort::FileSize),
                    Err(error) => self.cut(CutShort::Error(error)),
                }
            }
        }
        if self.cut_short.is_some() {
            self.unwritten += 1;
        } else if self.current.blocks.len() >= CHUNK {
            self.flush();
        }
    }

    /// Writes what is there.
    pub(super) fn flush(&mut self) {
        if self.cut_short.is_none()
            && let Err(error) = self.current.flush()
        {
            let had = self.current.packets + self.current.starts.len() as u64;
            // A pipe has nothing to take back.
            let _ = self.current.make_room();
            self.unwritten += had - self.current.packets;
            self.cut(CutShort::Error(error));
        }
    }

    /// Ends the file, all of which is written, and begins the next one. False if there is to be none, or would be one without
    /// an end, because its size is too small for a packet.
    fn rotate(&mut self) -> io::Result<bool> {
        let Some(files) = self.options.files else { return Ok(false) };
        if self.current.packets == 0 {
            return Ok(false);
        }
        self.end_file("")?;
        self.packets += std::mem::take(&mut self.current.packets);
        let next = numbered(&self.path, &self.options, self.count + 1);
        if self.kept.len() >= files.get() as usize
            && let Some(oldest) = self.kept.pop_front()
        {
            fs::remove_file(oldest)?;
        }
        self.current = Output::create(&next, &self.options)?;
        self.count += 1;
        self.kept.push_back(next);
        Ok(true)
    }

    fn end_file(&mut self, comment: &str) -> io::Result<()> {
        let packets = self.packets + self.current.packets;
        let missing = self.dropped + self.unwritten;
        let counted = Statistics { received: packets + missing, dropped: missing };
        self.current.end(self.last_at_ns, counted, comment)
    }

    /// Ends the capture early.
    fn cut(&mut self, why: CutShort) {
        // If not even that can be written, the summary says so.
        let _ = self.end_file(&format!("cut short: {why}"));
        self.cut_short = Some(why);
    }

    /// Ends the last file.
    pub(super) fn finish(mut self) -> CaptureSummary {
        self.flush();
        if self.cut_short.is_none() {
            let comment = match self.dropped {
                0 => String::new(),
                dropped => format!("{dropped} packets are missing: the capture's queue was full"),
            };
            if let Err(error) = self.end_file(&comment) {
                self.cut_short = Some(CutShort::Error(error));
            }
        }
        CaptureSummary {
            packets: self.packets + self.current.packets,
            dropped: self.dropped,
            unwritten: self.unwritten,
            files: self.count,
            cut_short: self.cut_short,
        }
    }
}

/// The name of a file: numbered if there may be several.
fn numbered(path: &Path, options: &CaptureOptions, number: u32) -> PathBuf {
    if options.files.is_none() {
        return path.to_path_buf();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("_{number:05}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
