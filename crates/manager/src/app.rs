//! What the parts of a manager share.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::auth::Tokens;
use crate::events::EventLog;
use crate::members::Members;
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::shapes::Settings;
use crate::store::Store;
use crate::wire::Wire;

/// A manager.
pub(crate) struct App {
    /// Where others reach it: `http://host:port`.
    pub(crate) url: String,
    /// All managers, as members are told them, without tokens.
    pub(crate) managers: Vec<String>,
    tokens: RwLock<Arc<Tokens>>,
    settings: RwLock<Settings>,
    pub(crate) store: Store,
    pub(crate) members: Members,
    pub(crate) events: EventLog,
    pub(crate) wire: Wire,
    pub(crate) progress: Progress,
    pub(crate) metrics: Metrics,
    /// Counts what is new of members, for those who wait for it.
    pub(crate) news: watch::Sender<u64>,
    /// Becomes true once, when the manager is to end.
    pub(crate) stop: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        url: &str,
        managers: Vec<String>,
        tokens: Tokens,
        settings: &Settings,
        store: Store,
        events: EventLog,
        wire: Wire,
    ) -> App {
        App {
            url: url.to_owned(),
            managers,
            tokens: RwLock::new(Arc::new(tokens)),
            settings: RwLock::new(settings.clone()),
            store,
            members: Members::default(),
            events,
            wire,
            progress: Progress::default(),
            metrics: Metrics::default(),
            news: watch::Sender::new(0),
            stop: watch::Sender::new(false),
        }
    }

    /// The tokens that are known now.
    pub(crate) fn tokens(&self) -> Arc<Tokens> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_tokens(&self, tokens: Tokens) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over the settings that `wish` names; all of them as they are then.
    pub(crate) fn change_settings(&self, wish: &Settings) -> Settings {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        settings.moves_per_group = wish.moves_per_group.or(settings.moves_per_group);
        settings.move_rate = wish.move_rate.or(settings.move_rate);
        settings.freeze_ms = wish.freeze_ms.or(settings.freeze_ms);
        settings.clone()
    }

    /// The managers as members are told them: with their token, where one is needed.
    pub(crate) fn join_urls(&self) -> Vec<String> {
        let tokens = self.tokens();
        let with_token = |url: &String| match tokens.member() {
            Some(token) => url.replacen("://", &format!("://member:{token}@"), 1),
            None => url.clone(),
        };
        self.managers.iter().map(with_token).collect()
    }
}
