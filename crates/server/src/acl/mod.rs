//! Users and what they may do.
//!
//! A session without a user of its own is the default user's. As long as that one may do everything, a command costs one
//! branch: the session has no [`State::RESTRICTED`](crate::session::State::RESTRICTED). Each change of a user raises
//! [`Acl::version`]; a session that has seen an older version looks at its user again before its next command, so no
//! command begins by rights that were taken away before the change was answered.
//!
//! - [`selector`]: one set of rights, and the rules that change it.
//! - [`rules`]: a user's selectors, passwords and flags.
//! - [`check`]: whether a command is allowed, and the error if not.
//! - [`log`]: ACL LOG.
//! - [`mod@file`]: `aclfile` and the users of the config file.
//! - [`commands`]: the ACL commands; [`session`]: AUTH and what sessions keep.

pub mod check;
pub mod commands;
pub mod file;
pub mod log;
pub mod rules;
pub mod selector;
pub(crate) mod session;

#[cfg(test)]
mod tests;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use rules::Rules;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The name of the user of whoever has not logged in as another.
pub const DEFAULT_USER: &[u8] = b"default";

/// A user. Sessions hold it; its rules may change under them.
pub struct User {
    /// Its name.
    pub name: Box<[u8]>,
    rules: ArcSwap<Rules>,
    /// It was removed: whoever is logged in as it is to go.
    deleted: AtomicBool,
}

impl User {
    fn new(name: &[u8], rules: Rules) -> Arc<User> {
        Arc::new(User { name: name.into(), rules: ArcSwap::from_pointee(rules), deleted: AtomicBool::new(false) })
    }

    /// Its present rules.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Whether it was removed.
    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// As a line of a config file or `aclfile`.
    pub fn line(&self) -> Vec<u8> {
        [b"user ", &*self.name, b" ", &self.rules().describe()].concat()
    }
}

type Users = BTreeMap<Vec<u8>, Arc<User>>;

/// All users.
pub struct Acl {
    users: RwLock<Users>,
    /// The default user, which is never removed.
    default: Arc<User>,
    version: AtomicU32,
    /// Held while rules are changed.
    writer: Mutex<()>,
    /// What was refused.
    pub log: log::AclLog,
}

/// A user's rules before and after a change, for those who are subscribed.
pub struct Change {
    /// The user.
    pub user: Arc<User>,
    /// Its rules before; `None`: it is new.
    pub before: Option<Arc<Rules>>,
    /// Its rules now.
    pub after: Arc<Rules>,
}

impl Acl {
    /// Only the default user, with this password (`requirepass`; empty: none).
    pub fn new(required_password: &[u8]) -> Acl {
        let mut rules = Rules::of_default_user();
        rules.set_required_password(required_password);
        let default = User::new(DEFAULT_USER, rules);
        Acl {
            users: RwLock::new(BTreeMap::from([(DEFAULT_USER.to_vec(), default.clone())])),
            default,
            version: AtomicU32::new(1),
            writer: Mutex::new(()),
            log: log::AclLog::default(),
        }
    }

    /// Grows with each change of a user. Starts at 1.
    #[inline]
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    fn note_change(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// The default user.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// Whether the default user needs a password, or nobody may be it.
    pub fn default_needs_password(&self) -> bool {
        let rules = self.default.rules.load();
        !rules.nopass || !rules.enabled
    }

    /// Whether the default user has no password (for protected mode and AUTH with one argument).
    pub fn default_has_no_password(&self) -> bool {
        self.default.rules.load().nopass
    }

    /// The user of a name.
    pub fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.read().get(name).cloned()
    }

    /// All users by name.
    pub fn users(&self) -> Vec<Arc<User>> {
        self.users.read().values().cloned().collect()
    }

    /// ACL SETUSER: applies all words to a user, which is made when missing, or none of them.
    ///
    /// # Errors
    /// What is wrong, in Redis' words.
    pub fn set_user(&self, name: &[u8], words: &[Vec<u8>], all_channels: bool) -> Result<Change, String> {
        let words = rules::merge_selectors(words).map_err(|index| {
            let word = words.get(index).map(|word| String::from_utf8_lossy(word)).unwrap_or_default();
            format!("Unmatched parenthesis in acl selector starting at '{word}'.")
        })?;
        let _writer = self.writer.lock();
        let user = self.get(name);
        let before = user.as_ref().map(|user| user.rules());
        let mut after = before.as_ref().map_or_else(|| Rules::new(all_channels), |rules| Rules::clone(rules));
        for word in &words {
            after.apply(word, all_channels).map_err(|error| {
                format!("Error in ACL SETUSER modifier '{}': {}", String::from_utf8_lossy(word), error.text())
            })?;
        }
        let after = Arc::new(after);
        let user = match user {
            Some(user) => {
                user.rules.store(after.clone());
                user
            }
            None => {
                let user = User::new(name, Rules::clone(&after));
                self.users.write().insert(name.to_vec(), user.clone());
                user
            }
        };
        self.note_change();
        Ok(Change { user, before, after })
    }

    /// Removes a user. `None`: there is none, or it is the default one.
    pub fn delete(&self, name: &[u8]) -> Option<Arc<User>> {
        if name == DEFAULT_USER {
            return None;
        }
        let _writer = self.writer.lock();
        let user = self.users.write().remove(name)?;
        user.deleted.store(true, Ordering::Release);
        self.note_change();
        Some(user)
    }

    /// CONFIG SET requirepass: the default user has this password alone, or none.
    pub fn set_required_password(&self, password: &[u8]) {
        let _writer = self.writer.lock();
        let mut rules = Rules::clone(&self.default.rules());
        rules.set_required_password(password);
        self.default.rules.store(Arc::new(rules));
        self.note_change();
    }

    /// Puts other users in the place of all there are. The default user keeps its identity and takes over the new rules;
    /// it gets those of the start if there are none. Returns the users that are gone.
    fn replace(&self, mut users: BTreeMap<Vec<u8>, Rules>) -> Vec<Arc<User>> {
        let _writer = self.writer.lock();
        let default_rules = users.remove(DEFAULT_USER).unwrap_or_else(Rules::of_default_user);
        self.default.rules.store(Arc::new(default_rules));
        let mut new: Users = users.into_iter().map(|(name, rules)| (name.clone(), User::new(&name, rules))).collect();
        new.insert(DEFAULT_USER.to_vec(), self.default.clone());
        let old = std::mem::replace(&mut *self.users.write(), new);
        let gone: Vec<Arc<User>> = old.into_values().filter(|user| !Arc::ptr_eq(user, &self.default)).collect();
        for user in &gone {
            user.deleted.store(true, Ordering::Release);
        }
        self.note_change();
        gone
    }
}
