//! Where systems differ, and nowhere else: named pipes, files of the program's own, permissions, huge pages, which processes are alive.
//!
//! What is not here is the same everywhere: a rename takes the place of the file that is there (also on Windows), locks are the standard library's,
//! and Ctrl-C is the `ctrlc` crate's in the program.

use std::fs::{File, OpenOptions};
use std::path::Path;

use memmap2::MmapMut;

/// The program's own open files, and whatever else the system shows as files: written to as they are, never replaced.
const OWN_FILES: [&str; 4] = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"];

/// Whether opening it waits for somebody to write. A pipe without a name, as a shell hands it over, has somebody.
#[cfg(unix)]
pub(crate) fn is_named_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;

    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
        && path.canonicalize().is_ok()
}

/// Named pipes of Windows are no files in folders, and answer at once.
#[cfg(not(unix))]
pub(crate) fn is_named_pipe(_: &Path) -> bool {
    false
}

/// Whether what is behind this path is in use by the program itself.
pub(crate) fn is_own_file(path: &Path) -> bool {
    cfg!(unix) && OWN_FILES.iter().any(|own| path.starts_with(own))
}

/// Whether the process of this number may be alive; `None` where the system does not say.
pub(crate) fn is_alive(process: u32) -> Option<bool> {
    let processes = Path::new("/proc");
    processes
        .join("self")
        .exists()
        .then(|| processes.join(process.to_string()).exists())
}

/// Has the system write down the names of the files in a folder. Best effort: the files themselves are on disk, and not every system opens
/// folders.
pub(crate) fn keep_names(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// A new file is for its owner alone. Windows has no such bits; a file there has the rights of its folder.
#[cfg_attr(not(unix), allow(unused_variables))]
pub fn for_its_owner(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

/// Asks for pages of 2 MiB: a wish. Where it is not granted, nothing changes but the time.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(crate) fn wish_for_huge_pages(memory: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
}
