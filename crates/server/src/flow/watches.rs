//! How many watches each user has open.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::status::ApiError;

/// Counts the watches of each user, so that one cannot take them all.
#[derive(Debug)]
pub(crate) struct Watches {
    most_per_user: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl Watches {
    /// So many watches may each user have open.
    pub(crate) fn new(most_per_user: usize) -> Self {
        Self {
            most_per_user,
            open: Arc::default(),
        }
    }

    /// Takes a place for a watch of a user.
    pub(crate) fn enter(&self, user: &str) -> Result<WatchPermit, ApiError> {
        let mut open = self.open.lock();
        let count = open.entry(user.to_owned()).or_default();
        if *count >= self.most_per_user {
            let most = self.most_per_user;
            return Err(ApiError::too_many_requests(
                format!("more than {most} watches are open for this user"),
                1,
            ));
        }
        *count += 1;
        Ok(WatchPermit {
            user: user.to_owned(),
            open: self.open.clone(),
        })
    }

    /// How many watches are open.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().values().sum()
    }
}

/// One open watch; its place is free again when this goes.
pub(crate) struct WatchPermit {
    user: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}
