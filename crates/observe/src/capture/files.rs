//! The files of a capture, and their rotation.

use super::{CaptureOptions, CaptureSummary, EarlyEnd};
use crate::pcapng::{Blocks, Packet, Statistics};
use crate::record_file::{CHUNK, LostRecords, RecordFile};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
    cut_short: Option<EarlyEnd>,
}

/// A file that is being written.
#[derive(Debug)]
struct Output {
    file: RecordFile,
    /// What is not in it yet.
    blocks: Blocks,
}

impl Output {
    fn create(path: &Path, options: &CaptureOptions) -> io::Result<Self> {
        let mut blocks = Blocks::default();
        blocks.section(&options.comment);
        blocks.interface(&options.interface, options.link_type, options.snap_length.map(u32::from));
        let file = RecordFile::create(path, blocks.as_bytes())?;
        blocks.clear();
        Ok(Self { file, blocks })
    }

    /// Adds a packet, unless the file would then have more than `limit` bytes.
    fn packet(&mut self, packet: &Packet<'_>, limit: u64) -> bool {
        self.blocks.packet(packet);
        if !self.file.has_room(self.blocks.len(), limit) {
            self.blocks.remove_last();
            return false;
        }
        self.file.begin(self.blocks.last());
        true
    }

    /// Writes what is there.
    fn flush(&mut self) -> Result<(), LostRecords> {
        let written = self.file.write(self.blocks.as_bytes());
        self.blocks.clear();
        written
    }

    /// Writes the last block.
    fn end(&mut self, at_ns: u64, counted: Statistics, comment: &str) -> Result<(), LostRecords> {
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

    /// Packets in files, also in those that the rotation has deleted since.
    pub(super) const fn packets(&self) -> u64 {
        self.packets + self.current.file.records()
    }

    /// Packets that came, and are not in a file.
    pub(super) const fn unwritten(&self) -> u64 {
        self.unwritten
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
                    Ok(_) => self.cut(EarlyEnd::FileSize),
                    Err(error) => self.cut(EarlyEnd::Error(error)),
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
            && let Err(failed) = self.current.flush()
        {
            self.fail(failed);
        }
    }

    /// A file could not be written.
    fn fail(&mut self, failed: LostRecords) {
        self.unwritten += failed.records;
        self.cut(EarlyEnd::Error(failed.error));
    }

    /// Ends the file, all of which is written, and begins the next one. False if there is to be
    /// none, or would be one without an end, because its size is too small for a packet.
    fn rotate(&mut self) -> io::Result<bool> {
        let Some(files) = self.options.files else { return Ok(false) };
        if self.current.file.records() == 0 {
            return Ok(false);
        }
        if let Err(failed) = self.end_file("") {
            self.unwritten += failed.records;
            return Err(failed.error);
        }
        let next = numbered(&self.path, &self.options, self.count + 1);
        if self.kept.len() >= files.get() as usize
            && let Some(oldest) = self.kept.pop_front()
        {
            fs::remove_file(oldest)?;
        }
        let output = Output::create(&next, &self.options)?;
        self.packets += self.current.file.records();
        self.current = output;
        self.count += 1;
        self.kept.push_back(next);
        Ok(true)
    }

    fn end_file(&mut self, comment: &str) -> Result<(), LostRecords> {
        let packets = self.packets();
        let missing = self.dropped + self.unwritten;
        let counted = Statistics { received: packets + missing, dropped: missing };
        self.current.end(self.last_at_ns, counted, comment)
    }

    /// Ends the capture early.
    fn cut(&mut self, why: EarlyEnd) {
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
            if let Err(failed) = self.end_file(&comment) {
                self.fail(failed);
            }
        }
        CaptureSummary {
            packets: self.packets(),
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
