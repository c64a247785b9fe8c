//! How much memory compiled constraints may keep, each and together.

use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::Arc;

use crate::error::{Error, Result, Status};

/// Of a constraint and its forks, with what their masks have added.
pub const MAX_BYTES: isize = 256 << 20;
/// No new one is taken beyond it.
pub const MAX_TOTAL_BYTES: isize = 1 << 30;

/// Of a vocabulary's constraints, all together.
#[derive(Default)]
pub struct Budget {
    total: AtomicIsize,
}

/// A constraint's part of it, given back when the last fork is gone.
pub struct Charge {
    budget: Arc<Budget>,
    n_bytes: AtomicIsize,
}

impl Budget {
    pub fn charge(self: &Arc<Budget>, n_bytes: usize) -> Result<Arc<Charge>> {
        let n_bytes = isize::try_from(n_bytes).unwrap_or(isize::MAX);
        let fits = |total: isize| total.checked_add(n_bytes).filter(|total| *total <= MAX_TOTAL_BYTES);
        if self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            let message = format!("constraints in use take all of {} MiB; try again later", MAX_TOTAL_BYTES >> 20);
            return Err(Error::new(Status::Busy, message));
        }
        Ok(Arc::new(Charge { budget: self.clone(), n_bytes: AtomicIsize::new(n_bytes) }))
    }
}

impl Charge {
    pub fn add(&self, n_bytes: isize) {
        if n_bytes != 0 {
            self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
            self.budget.total.fetch_add(n_bytes, Ordering::Relaxed);
        }
    }

    pub fn check(&self) -> Result<()> {
        if self.n_bytes.load(Ordering::Relaxed) > MAX_BYTES {
            return Err(Error::limit(format!("constraint: its states take more than {} MiB", MAX_BYTES >> 20)));
        }
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.total.fetch_sub(self.n_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_makes_room() {
        let budget = Arc::new(Budget::default());
        let first = budget.charge(700 << 20).unwrap();
        first.add(100 << 20);
        assert_eq!(budget.charge(300 << 20).err().unwrap().status, Status::Busy);
        assert_eq!(first.check().unwrap_err().status, Status::Limit);
        drop(first);
        assert!(budget.charge(1 << 30).unwrap().check().is_err());
        assert_eq!(budget.total.load(Ordering::Relaxed), 0);
    }
}
