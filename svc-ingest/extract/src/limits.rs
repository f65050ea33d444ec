//! The resource limits of a child (ADR 44).

use std::time::Duration;

/// Address space of a child: allocating more kills it.
pub(crate) const MAX_MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
/// CPU time of one document.
pub(crate) const MAX_CPU: Duration = Duration::from_secs(20);
