//! C8 and C10: work and data by the gigabyte.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::{Client, Launch, process, text};

use super::bystander::Bystander;
use super::{Context, ensure_alive, mebibytes};

const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// C8: eight writers of mixed sizes never push the server far over maxmemory.
pub(super) fn policies(context: &Context<'_>) -> Result<String> {
    let (megabytes, seconds) = context.pick((24_u64, 1), (256, 300));
    let limit = megabytes << 20;
    let mut worst_used = 0.0_f64;
    let mut worst_resident = 0.0_f64;
    for policy in POLICIES {
        let maxmemory = format!("{megabytes}mb");
        let mut server = context.server(&["--maxmemory", &maxmemory, "--maxmemory-policy", policy])?;
        let idle = process::resident_bytes(server.pid())?;
        let end = Instant::now() + Duration::from_secs(seconds);
        let port = server.port();
        let refused: u64 = std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..8_u64).map(|index| scope.spawn(move || write_until(port, index, end).unwrap_or(0))).collect();
            let mut watcher = server.client();
            while Instant::now() < end {
                let used = watcher.info("used_memory").and_then(|used| used.parse::<u64>().ok()).unwrap_or(0);
                worst_used = worst_used.max(used as f64 / limit as f64);
                std::thread::sleep(Duration::from_millis(20));
            }
            writers.into_iter().map(|writer| writer.join().unwrap_or(0)).sum()
        });
        ensure_alive(&mut server)?;
        let resident = process::peak_resident_bytes(server.pid())?.saturating_sub(idle);
        worst_resident = worst_resident.max(resident as f64 / limit as f64);
        ensure!(policy != "noeviction" || refused > 0, "noeviction never answered -OOM");
        ensure!(!policy.starts_with("allkeys") || refused == 0, "{policy} answered -OOM {refused} times");
    }
    ensure!(worst_used <= 1.05, "used memory reached {:.0} % of maxmemory", worst_used * 100.0);
    ensure!(worst_resident <= 1.4, "resident memory grew to {:.0} % of maxmemory", worst_resident * 100.0);
    Ok(format!(
        "8 policies at {megabytes} MiB: used up to {:.1} %, resident up to {:.0} %",
        worst_used * 100.0,
        worst_resident * 100.0
    ))
}

/// Writes until the end; returns how often the server was out of memory.
fn write_until(port: u16, seed: u64, end: Instant) -> Result<u64> {
    let mut client = Client::connect(port)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut refused = 0;
    while Instant::now() < end {
        let mut batch = Vec::new();
        for _ in 0..16 {
            let key = random.u32(0..200_000);
            let value = "v".repeat([3, 60, 500, 4_000][random.usize(0..4)]);
            batch.push(match random.u8(0..5) {
                0 => text::words(&format!("SET key:{key} {value} EX {}", random.u16(100..10_000))),
                1 => text::words(&format!("HSET hash:{} f{} {value}", key % 500, key % 97)),
                2 => text::words(&format!("RPUSH list:{} {value}", key % 500)),
                3 => text::words(&format!("ZADD zset:{} {key} {value}", key % 500)),
                _ => text::words(&format!("SET key:{key} {value}")),
            });
        }
        for reply in client.pipeline(&batch)? {
            refused += u64::from(reply.text().starts_with("OOM"));
        }
    }
    Ok(refused)
}

/// C10: one client after another of the heavy commands; others are on other slots.
pub(super) fn heavy_client(context: &Context<'_>) -> Result<String> {
    let size = context.pick(100_000, 1_000_000);
    let launch: Launch = context.launch.clone();
    let mut server = launch.args(&["--io-threads", "2"]).try_start()?;
    let mut heavy = server.client();
    heavy.set_timeout(Duration::from_secs(120))?;
    fill(&mut heavy, size)?;
    let bystander = Bystander::start(&server, "")?;
    let mut slowest: (&str, Duration) = ("", Duration::ZERO);
    let commands = [
        "KEYS *",
        "SORT list ALPHA LIMIT 0 10",
        "LRANGE list 0 -1",
        "SMEMBERS set",
        "SUNIONSTORE union set set2",
        "ZRANGE zset 0 -1 WITHSCORES",
        "DUMP list",
        "EVAL \"redis.call('set', KEYS[1], 1) local s = 0 for i = 1, 8000000 do s = s + i % 7 end return s\" 1 script",
        "DEL zset",
        "UNLINK union",
        "LREM list 0 nothing",
        "FLUSHALL",
    ];
    for command in commands {
        let started = Instant::now();
        // The reply is not parsed here: that would only slow this process down.
        heavy.send(&text::words(command))?;
        let (_, closed) = heavy.read_to_end(Duration::from_millis(200));
        ensure!(!closed, "{command} closed the connection");
        let took = started.elapsed().saturating_sub(Duration::from_millis(200));
        if took > slowest.1 {
            slowest = (command, took);
        }
    }
    let transaction = context.pick(10_000, 100_000);
    let mut commands = vec![text::words("MULTI")];
    commands.extend((0..transaction).map(|i| text::words(&format!("SET t:{i} x"))));
    commands.push(text::words("EXEC"));
    let started = Instant::now();
    heavy.pipeline(&commands)?;
    if started.elapsed() > slowest.1 {
        slowest = ("MULTI of many", started.elapsed());
    }
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    felt.ensure_quick()?;
    let resident = mebibytes(process::peak_resident_bytes(server.pid())?);
    Ok(format!(
        "{size} elements: {felt}; slowest {} {:.0} ms; peak {resident:.0} MiB",
        slowest.0,
        slowest.1.as_secs_f64() * 1e3
    ))
}

fn fill(client: &mut Client, size: usize) -> Result<()> {
    for from in (0..size).step_by(1_000) {
        let batch: Vec<Vec<Vec<u8>>> = (from..(from + 1_000).min(size))
            .flat_map(|i| {
                [
                    format!("RPUSH list element:{i}"),
                    format!("SADD set member:{i}"),
                    format!("SADD set2 member:{}", i * 2),
                    format!("ZADD zset {i} member:{i}"),
                    format!("SET key:{i} x"),
                ]
            })
            .map(|command| text::words(&command))
            .collect();
        client.pipeline(&batch)?;
    }
    Ok(())
}
