//! Bytes that requests hold: bodies that have arrived, and answers that have not been read.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::status::ApiError;

/// What a request costs beside its body, roughly: this bounds how many requests of one user can be under way.
const REQUEST: usize = 16 * 1024;

/// The bytes of all users.
#[derive(Debug)]
pub(crate) struct Memory {
    most_per_user: usize,
    most: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Sum of `by_user`.
    total: usize,
    /// Users who hold any.
    by_user: HashMap<Arc<str>, usize>,
}

impl Memory {
    pub(crate) fn new(most_per_user: usize, most: usize) -> Self {
        Self {
            most_per_user,
            most,
            used: Mutex::default(),
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.lock().total
    }

    /// Whoever is below the limits gets what they ask for, so that an answer that is larger than the limit can be sent.
    fn take(&self, user: &Arc<str>, bytes: usize) -> Result<(), ApiError> {
        let mut used = self.used.lock();
        let own = used.by_user.get(user).copied().unwrap_or(0);
        if own >= self.most_per_user || used.total >= self.most {
            let text = "too many requests: bodies and unread answers hold too much memory, please try again later";
            return Err(ApiError::too_many_requests(text, 1));
        }
        used.total += bytes;
        *used.by_user.entry(user.clone()).or_default() += bytes;
        Ok(())
    }

    fn give_back(&self, user: &Arc<str>, bytes: usize) {
        let mut used = self.used.lock();
        used.total -= bytes;
        if let Some(own) = used.by_user.get_mut(user) {
            *own -= bytes;
            if *own == 0 {
                used.by_user.remove(user);
            }
        }
    }
}

/// Bytes that somebody holds. They are given back when this is dropped.
pub(crate) struct Charge {
    memory: Arc<Memory>,
    user: Arc<str>,
    bytes: usize,
}

impl Charge {
    /// An account without any bytes.
    pub(crate) fn new(memory: &Arc<Memory>, user: &str) -> Self {
        Self {
            memory: memory.clone(),
            user: user.into(),
            bytes: 0,
        }
    }

    /// Counts a request that has begun.
    ///
    /// # Errors
    /// As [`Charge::add`].
    pub(crate) fn begin(&mut self) -> Result<(), ApiError> {
        self.add(REQUEST)
    }

    /// Holds more bytes.
    ///
    /// # Errors
    /// 429 when the user, or all users together, hold as much as they may.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.memory.take(&self.user, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Passes a part of the bytes on.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            memory: self.memory.clone(),
            user: self.user.clone(),
            bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.give_back(&self.user, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_all_together_are_bounded_and_everything_comes_back() {
        let memory = Arc::new(Memory::new(100, 250));
        let mut a = Charge::new(&memory, "a");
        a.add(200).expect("more than the limit is fine, once");
        assert_eq!(a.add(1).expect_err("that was all").code(), 429);
        let mut b = Charge::new(&memory, "b");
        b.add(60).expect("others have their own");
        assert!(
            Charge::new(&memory, "c").add(1).is_err(),
            "all together have too much"
        );
        let part = a.split(150);
        drop(a);
        assert_eq!(memory.used(), 210);
        Charge::new(&memory, "c")
            .add(1)
            .expect("there is room again");
        drop((part, b));
        assert_eq!(memory.used(), 0);
        assert!(memory.used.lock().by_user.is_empty());
    }
}
