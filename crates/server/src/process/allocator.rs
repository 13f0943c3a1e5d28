//! What the allocator says about itself, and what can be asked of it.
//!
//! The figures are jemalloc's. Built without the feature `jemalloc` (for sanitizers, which bring an allocator of their
//! own) there are none, and everything that would be asked of it is a success without effect.

/// Bytes that the allocator has handed out, keeps in pages in use, and keeps mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Handed out.
    pub allocated: usize,
    /// In pages that hold something.
    pub active: usize,
    /// In pages that are mapped.
    pub resident: usize,
}

#[cfg(feature = "jemalloc")]
pub use jemalloc::{figures, name, purge, report, set_threads};
#[cfg(not(feature = "jemalloc"))]
pub use system::{figures, name, purge, report, set_threads};

#[cfg(feature = "jemalloc")]
mod jemalloc {
    use super::Figures;
    use tikv_jemalloc_ctl::{background_thread, epoch, stats, stats_print, version};

    /// The figures now; `used` stands for one that the allocator does not tell.
    #[must_use]
    pub fn figures(used: usize) -> Figures {
        // An error leaves the figures of the last epoch, or none.
        let _ = epoch::advance();
        Figures {
            allocated: stats::allocated::read().unwrap_or(used),
            active: stats::active::read().unwrap_or(used),
            resident: stats::resident::read().unwrap_or(used),
        }
    }

    /// The allocator and its version, without the revision it was built from.
    #[must_use]
    pub fn name() -> String {
        let text = version::read().unwrap_or("");
        format!("jemalloc-{}", text.split('-').next().unwrap_or(""))
    }

    /// The allocator's own report, for people.
    #[must_use]
    pub fn report() -> Vec<u8> {
        let mut text = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = stats_print::stats_print(&mut text, stats_print::Options::default());
        text
    }

    /// Gives pages that the allocator holds without need back to the kernel. False: it refused.
    #[must_use]
    pub fn purge() -> bool {
        crate::process::sys::purge_allocator()
    }

    /// Turns the allocator's background threads on or off.
    ///
    /// # Errors
    /// The allocator's text.
    pub fn set_threads(are_wanted: bool) -> Result<(), String> {
        background_thread::write(are_wanted).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "jemalloc"))]
mod system {
    use super::Figures;

    /// No figures: `used` stands for each.
    #[must_use]
    pub fn figures(used: usize) -> Figures {
        Figures { allocated: used, active: used, resident: used }
    }

    /// As Redis names it when it was built with the C library's.
    #[must_use]
    pub fn name() -> String {
        "libc".to_owned()
    }

    /// As Redis says it of an allocator that is not jemalloc.
    #[must_use]
    pub fn report() -> Vec<u8> {
        b"Stats not supported for the current allocator".to_vec()
    }

    /// Nothing to do.
    #[must_use]
    pub fn purge() -> bool {
        true
    }

    /// Nothing to do.
    ///
    /// # Errors
    /// None.
    pub fn set_threads(_are_wanted: bool) -> Result<(), String> {
        Ok(())
    }
}
