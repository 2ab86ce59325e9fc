//! What a run leaves in files: opened before the program starts, named once it has ended.

use crate::args::emulate::EmulateArgs;
use crate::failure::Failure;
use crate::output::result_file::ResultFile;

/// The files that are asked for. If the run fails none of them is left.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) json: Option<ResultFile>,
    pub(super) pcap: Option<ResultFile>,
}

impl Files {
    pub(super) fn open(args: &EmulateArgs) -> Result<Self, Failure> {
        let (json, pcap) = (args.json.as_deref(), args.pcap.as_deref());
        if let (Some(json), Some(pcap)) = (json, pcap)
            && json == pcap
        {
            let file = json.display();
            return Err(Failure::usage(format!(
                "--json {file}: --pcap has the same file; give each its own"
            )));
        }
        let json = json.map(|path| ResultFile::open("--json", path)).transpose()?;
        let pcap = pcap.map(|path| ResultFile::open_private("--pcap", path)).transpose()?;
        Ok(Self { json, pcap })
    }

    /// All have been written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        [self.pcap, self.json].into_iter().flatten().try_for_each(ResultFile::finish)
    }
}
