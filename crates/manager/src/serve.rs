//! The process: listens, leads or follows, ends when asked.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::app::App;
use crate::auth::Tokens;
use crate::command::Options;
use crate::events::{EventLog, Note};
use crate::store::Store;
use crate::wire::Wire;
use crate::{api, driver, events, registrar};

/// Threads of the runtime. What takes long (the store) runs on threads of its own.
const WORKERS: usize = 2;
/// Events that are read at the start, to know of moves who asked for them.
const RECALLED: usize = 5_000;
/// Between two looks at the token file.
const TOKEN_PERIOD: Duration = Duration::from_secs(2);
/// Longest wait for requests that are under way when it ends.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Runs a manager until it is asked to end.
///
/// # Errors
/// What keeps it from starting.
pub(crate) fn run(options: Options) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("manager")
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    runtime.block_on(live(options))
}

async fn live(options: Options) -> Result<(), String> {
    let folder = options.folder.clone();
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Before anything else: who cannot listen does not lead.
    let mut listeners = Vec::new();
    for address in &options.listen {
        let listener = TcpListener::bind(address).await;
        listeners.push(listener.map_err(|error| format!("cannot listen on {address}: {error}"))?);
    }
    let (log, complaint) = EventLog::open(&folder)
        .map_err(|error| format!("cannot open the log of events in {}: {error}", folder.display()))?;
    let store = Store::open(&options).await?;
    let wire = Wire::new(options.login.clone());
    let app = App::new(&options.url, options.managers.clone(), options.tokens, &options.settings, store, log, wire);
    let app = Arc::new(app);
    if let Some(complaint) = complaint {
        app.events.write(Note { result: complaint, ..Note::event("events.damaged", "events.ndjson", "") });
    }
    if let Ok(events) = app.store.ask(|coordinator| events::read(coordinator, None, RECALLED)).await {
        app.progress.recall(&events);
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(crate::store::follow(app.clone()));
    tasks.spawn(events::ship(app.clone()));
    tasks.spawn(driver::drive(app.clone()));
    tasks.spawn(registrar::tend(app.clone()));
    if let Some(path) = options.token_file {
        tasks.spawn(watch_tokens(app.clone(), path));
    }
    for listener in listeners {
        tasks.spawn(listen(app.clone(), listener));
    }
    println!(
        "oxidis manager listens on {}",
        options.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    );
    asked_to_end().await?;
    app.stop.send_replace(true);
    let ended = tokio::time::timeout(END_PATIENCE, async { while tasks.join_next().await.is_some() {} }).await;
    if ended.is_err() {
        eprintln!("oxidis manager: requests were still under way when it ended");
    }
    app.store.resign().await;
    println!("oxidis manager has ended");
    Ok(())
}

async fn asked_to_end() -> Result<(), String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

async fn listen(app: Arc<App>, listener: TcpListener) {
    let service = api::router(&app).into_make_service_with_connect_info::<SocketAddr>();
    let mut stop = app.stop.subscribe();
    let ended = async move {
        while !*stop.borrow_and_update() {
            if stop.changed().await.is_err() {
                return;
            }
        }
    };
    if let Err(error) = axum::serve(listener, service).with_graceful_shutdown(ended).await {
        eprintln!("oxidis manager: cannot serve any more: {error}");
    }
}

/// Reads the token file anew when it has changed. A wrong one changes nothing.
async fn watch_tokens(app: Arc<App>, path: PathBuf) {
    let changed_at = |path: &Path| std::fs::metadata(path).and_then(|facts| facts.modified()).ok();
    let mut known: Option<SystemTime> = changed_at(&path);
    let mut stop = app.stop.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(TOKEN_PERIOD) => {}
            _ = stop.changed() => return,
        }
        let now = changed_at(&path);
        if now == known || now.is_none() {
            continue;
        }
        known = now;
        let result = match Tokens::load(&path) {
            Ok((tokens, _)) => {
                app.set_tokens(tokens);
                "ok".into()
            }
            Err(error) => error,
        };
        app.events.write(Note { result, ..Note::event("tokens.read", "token file", "") });
    }
}
