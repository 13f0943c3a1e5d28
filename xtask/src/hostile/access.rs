//! E1, E2, E5: rights that must not be got round, logins that must not tell what is wrong, secrets that must not show.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use testkit::{Client, Reply, Server};

use super::{Context, ensure_alive};

// ---- E1 ----------------------------------------------------------------------------------------------------------

/// Users, each with a right less than all.
const USERS: &[(&str, &str)] = &[
    ("nokeys", "+@all allchannels"),
    ("readonly", "+@all allchannels %R~*"),
    ("writeonly", "+@all allchannels %W~*"),
    ("somekeys", "+@all allchannels ~a*"),
    ("nochannels", "+@all ~*"),
    ("selectors", "+@read %R~a* allchannels (+@write ~b*) (+@all -@write -@read ~*)"),
    ("nowrites", "+@all -@write -@dangerous ~* allchannels"),
    ("nothing", "-@all ~* allchannels"),
];

/// Run only where they are refused: they end, stop or empty the server, or change who may do what.
const NEVER_RUN: &[&str] = &[
    "shutdown",
    "debug",
    "failover",
    "replicaof",
    "slaveof",
    "sync",
    "psync",
    "monitor",
    "acl",
    "config",
    "client",
    "flushall",
    "flushdb",
    "swapdb",
    "save",
    "bgsave",
    "bgrewriteaof",
    "migrate",
    "module",
    "cluster",
    "wait",
    "waitaof",
    "replconf",
    "restore-asking",
    "script",
    "function",
    "eval",
    "evalsha",
    "eval_ro",
    "evalsha_ro",
    "fcall",
    "fcall_ro",
];

/// Those that a transaction treats in their own way.
const NOT_QUEUED: &[&str] = &["multi", "exec", "discard", "watch", "quit", "reset", "auth", "hello"];

const WORDS: &[&str] =
    &["a1", "b2", "c3", "0", "1", "2", "x", "store", "by", "a*", "get", "streams", "limit", "count", "1.5", "left"];

/// What was seen of one path.
#[derive(Default)]
struct Counts {
    calls: u64,
    refused: u64,
    scripts: u64,
}

/// Every command for each user on every path: by itself, in a transaction, in a transaction whose rights were taken
/// away before EXEC, from a script. Each must be refused exactly where ACL DRYRUN says so.
pub(super) fn rights(context: &Context<'_>) -> Result<String> {
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    let mut server = context.server(&["--io-threads", "2"])?;
    let mut admin = server.client();
    let names: Vec<String> = admin
        .run("COMMAND LIST")
        .items()
        .context("no list")?
        .iter()
        .map(|name| name.text().to_ascii_lowercase())
        .collect();
    for (user, rules) in USERS {
        let mut words = vec!["ACL".to_owned(), "SETUSER".into(), (*user).into(), "on".into(), "nopass".into()];
        words.extend(rules.split(' ').map(str::to_owned));
        ensure!(admin.call(&words)?.text() == "OK", "{rules}");
    }
    let has_scripts = !admin.run("EVAL \"return 1\" 0").text().starts_with("ERR unknown command");
    let mut counts = Counts::default();
    for _ in 0..context.pick(1, 40) {
        for name in &names {
            for (user, _) in USERS {
                let call = call_of(&mut rng, &mut admin, name)?;
                one_call(&server, &mut admin, user, &call, has_scripts, &mut counts)
                    .with_context(|| format!("OXIDIS_SEED={seed}: {user}: {call:?}"))?;
            }
        }
    }
    ensure_alive(&mut server)?;
    let scripts = if has_scripts { format!("{} from scripts", counts.scripts) } else { "no scripts here".to_owned() };
    Ok(format!("{} calls, {} refused, {scripts}; all as DRYRUN says", counts.calls, counts.refused))
}

/// A call with as many arguments as the command takes at least, some of them keys of each kind.
fn call_of(rng: &mut Rng, admin: &mut Client, name: &str) -> Result<Vec<String>> {
    let info = admin.call(&["COMMAND", "INFO", name])?;
    let arity = info.items().and_then(|rows| rows.first()?.items()?.get(1)?.integer()).context("no arity")?;
    let least = usize::try_from(arity.unsigned_abs())?;
    let mut call: Vec<String> = name.split('|').map(str::to_owned).collect();
    let count = least.max(call.len()) + if arity < 0 { rng.usize(..4) } else { 0 };
    while call.len() < count {
        call.push(WORDS[rng.usize(..WORDS.len())].to_owned());
    }
    Ok(call)
}

fn is_refusal(reply: &Reply) -> bool {
    reply.is_error() && reply.text().contains("NOPERM")
}

fn one_call(
    server: &Server,
    admin: &mut Client,
    user: &str,
    call: &[String],
    has_scripts: bool,
    counts: &mut Counts,
) -> Result<()> {
    let mut dry = vec!["ACL".to_owned(), "DRYRUN".into(), user.into()];
    dry.extend(call.iter().cloned());
    let said = admin.call(&dry)?;
    if said.is_error() {
        // Too broken for a verdict: unknown or too few arguments.
        return Ok(());
    }
    let is_refused = said.text() != "OK";
    let (name, is_blocking) = (call[0].as_str(), call[0].starts_with('b') || call[0].starts_with("xread"));
    if !is_refused && NEVER_RUN.contains(&name) {
        return Ok(());
    }
    counts.calls += 1;
    counts.refused += u64::from(is_refused);
    let login = || -> Result<Client> {
        let mut client = server.client();
        ensure!(client.call(&["AUTH", user, "x"])?.text() == "OK", "no login");
        Ok(client)
    };
    // By itself. A blocking command that is allowed may wait for ever.
    if is_refused || !is_blocking {
        let reply = login()?.call(call)?;
        if reply.text().starts_with("ERR unknown command") {
            // In the table, but not served here.
            return Ok(());
        }
        ensure!(is_refusal(&reply) == is_refused, "by itself: {reply}; DRYRUN: {said}");
    }
    if NOT_QUEUED.contains(&name) {
        return Ok(());
    }
    // In a transaction: refused while it is queued.
    let mut client = login()?;
    client.run("MULTI");
    if client.run("PING").text() == "QUEUED" {
        let reply = client.call(call)?;
        // Some are refused there whoever asks.
        let is_never_queued = reply.text() == "ERR Command not allowed inside a transaction";
        ensure!(is_never_queued || is_refusal(&reply) == is_refused, "in MULTI: {reply}; DRYRUN: {said}");
    }
    drop(client);
    // Queued with all rights, run with few.
    if is_refused {
        admin.run("ACL SETUSER fleeting reset on nopass +@all ~* &*");
        let mut client = server.client();
        client.run("AUTH fleeting x");
        client.run("MULTI");
        if client.call(call)?.text() == "QUEUED" {
            let rules = USERS.iter().find(|(other, _)| *other == user).map_or("", |(_, rules)| rules);
            let mut words: Vec<String> =
                ["ACL", "SETUSER", "fleeting", "reset", "on", "nopass"].map(str::to_owned).to_vec();
            words.extend(rules.split(' ').map(str::to_owned));
            words.push("+exec".to_owned());
            ensure!(admin.call(&words)?.text() == "OK", "rules of {user}");
            if name != "exec" {
                let replies = client.run("EXEC");
                let reply = replies.items().and_then(<[Reply]>::first).context("EXEC without replies")?;
                ensure!(is_refusal(reply), "at EXEC: {reply}; DRYRUN: {said}");
            }
        }
    }
    if has_scripts && is_refused && server_runs_scripts_for(admin, user)? {
        let mut words: Vec<String> = ["EVAL", "return redis.pcall(unpack(ARGV))", "0"].map(str::to_owned).to_vec();
        words.extend(call.iter().cloned());
        let reply = login()?.call(&words)?;
        ensure!(reply.is_error(), "from a script: {reply}; DRYRUN: {said}");
        counts.scripts += 1;
    }
    Ok(())
}

fn server_runs_scripts_for(admin: &mut Client, user: &str) -> Result<bool> {
    Ok(admin.call(&["ACL", "DRYRUN", user, "EVAL", "return 1", "0"])?.text() == "OK")
}

// ---- E2 ----------------------------------------------------------------------------------------------------------

/// From this on two kinds of login can be told apart.
const T_LIMIT: f64 = 4.5;

/// How long a wrong login takes must not tell what is wrong with it: the first byte, the last byte, the user, or that
/// the user is off. Welch's t of each pair, over what remains when the slowest tenth (the machine's doing) is left out.
pub(super) fn login_times(context: &Context<'_>) -> Result<String> {
    const KINDS: [(&str, &str, &str); 4] = [
        ("wrong at byte 1", "alice", "Xecret-password-of-32-characters"),
        ("wrong at the last byte", "alice", "secret-password-of-32-characterX"),
        ("unknown user", "alicf", "secret-password-of-32-characters"),
        ("user is off", "bobby", "secret-password-of-32-characters"),
    ];
    let server = context.server(&["--io-threads", "1"])?;
    let mut client = server.client();
    for (user, state) in [("alice", "on"), ("bobby", "off")] {
        let words = ["ACL", "SETUSER", user, state, ">secret-password-of-32-characters", "+@all"];
        ensure!(client.call(&words)?.text() == "OK", "{user}");
    }
    ensure!(client.call(&["AUTH", "alice", "secret-password-of-32-characters"])?.text() == "OK", "the right password");
    let mut rng = Rng::with_seed(seed());
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut texts = Vec::new();
    for round in 0..context.pick(8_000, 400_000) {
        let kind = rng.usize(..KINDS.len());
        let (_, user, password) = KINDS[kind];
        let start = Instant::now();
        let reply = client.call(&["AUTH", user, password])?;
        let took = start.elapsed();
        if round < 500 {
            // The caches are cold.
            texts.push(reply.text());
            continue;
        }
        times[kind].push(took.as_secs_f64() * 1e6);
    }
    texts.sort_unstable();
    texts.dedup();
    ensure!(texts == ["WRONGPASS invalid username-password pair or user is disabled."], "one text for all: {texts:?}");
    let mut all: Vec<f64> = times.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let cut = all[all.len() * 9 / 10];
    for kind in &mut times {
        kind.retain(|time| *time <= cut);
    }
    let mut worst = (0.0_f64, "", "");
    for first in 0..KINDS.len() {
        for second in first + 1..KINDS.len() {
            let t = welch(&times[first], &times[second]).abs();
            if t > worst.0 {
                worst = (t, KINDS[first].0, KINDS[second].0);
            }
        }
    }
    let count: usize = times.iter().map(Vec::len).sum();
    let figures = format!("{count} logins, largest |t| {:.2} ({} and {})", worst.0, worst.1, worst.2);
    if worst.0 >= T_LIMIT {
        bail!("{figures}: at or above {T_LIMIT}");
    }
    Ok(figures)
}

/// Welch's t of two samples.
fn welch(first: &[f64], second: &[f64]) -> f64 {
    let moments = |sample: &[f64]| {
        #[allow(clippy::cast_precision_loss)]
        let len = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / len;
        let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (len - 1.0);
        (mean, variance / len)
    };
    let ((mean1, error1), (mean2, error2)) = (moments(first), moments(second));
    (mean1 - mean2) / (error1 + error2).sqrt()
}

// ---- E5 ----------------------------------------------------------------------------------------------------------

/// Secrets planted wherever a command or the config file takes one: none may come out of log, INFO, SLOWLOG, MONITOR,
/// CLIENT LIST, ACL LIST or ACL LOG.
pub(super) fn secrets(context: &Context<'_>) -> Result<String> {
    let mut rng = Rng::with_seed(seed());
    let mut planted: Vec<String> = Vec::new();
    let mut secret = || {
        let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(20).collect();
        planted.push(format!("s{text}"));
        format!("s{text}")
    };
    let (pass, other) = (secret(), secret());
    let server = context.server(&["--io-threads", "2", "--slowlog-log-slower-than", "0", "--loglevel", "debug"])?;
    let mut admin = server.client();
    let mut monitor = server.client();
    ensure!(monitor.run("MONITOR").text() == "OK", "MONITOR");
    for command in [
        format!("ACL SETUSER al on >{pass} +@all ~* &*"),
        format!("ACL SETUSER al on <{other}"),
        format!("ACL SETUSER bo >{} nonsense", secret()),
        format!("ACL SETUSER {} +nonsense", secret()),
        format!("AUTH al {pass}"),
        format!("AUTH al {}", secret()),
        format!("AUTH {}", secret()),
        format!("AUTH al {} more", secret()),
        format!("HELLO 2 AUTH al {pass} SETNAME x"),
        format!("HELLO 2 SETNAME y AUTH al {}", secret()),
        format!("CONFIG SET masterauth {}", secret()),
        format!("CONFIG SET maxmemory 0 masterauth {} tls-key-file-pass {}", secret(), secret()),
        format!("CONFIG SET masterauth {} nosuch 1", secret()),
        format!("MIGRATE h 1 k 0 1 AUTH {}", secret()),
        format!("MIGRATE h 1 k 0 1 COPY AUTH2 al {}", secret()),
        format!("CONFIG SET requirepass {}", secret()),
        "CONFIG SET requirepass \"\"".to_owned(),
    ] {
        admin.run(&command);
    }
    let mut shown: Vec<(&str, String)> =
        ["SLOWLOG GET -1", "INFO everything", "CLIENT LIST", "ACL LIST", "ACL LOG", "LATENCY DOCTOR", "MEMORY DOCTOR"]
            .map(|command| (command, admin.run(command).to_string()))
            .to_vec();
    let seen = monitor.read_to_end(Duration::from_millis(300)).0;
    shown.push(("MONITOR", String::from_utf8_lossy(&seen).into_owned()));
    shown.push(("the log", server.log()));
    for (place, text) in &shown {
        if let Some(found) = planted.iter().find(|secret| text.contains(secret.as_str())) {
            bail!("{found} shows in {place}: {text}");
        }
    }
    Ok(format!("{} secrets, {} outputs, none found", planted.len(), shown.len()))
}

fn seed() -> u64 {
    std::env::var("OXIDIS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..))
}
