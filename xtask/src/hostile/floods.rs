//! C2 to C5 and C7: many clients that take, and give nothing back.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::{Client, process, wait_until};

use super::bystander::Bystander;
use super::{Context, ensure_alive, mebibytes};

/// C2: announcing a size costs the server nothing until the bytes come.
pub(super) fn announced(context: &Context<'_>) -> Result<String> {
    let count = context.pick(60, 200);
    let mut server = context.server(&[])?;
    let before = process::resident_bytes(server.pid())?;
    let bystander = Bystander::start(&server, "")?;
    let mut clients = Vec::new();
    for index in 0..count {
        let mut client = server.client();
        let announcement: &[u8] = if index % 2 == 0 {
            b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\n"
        } else {
            b"*2147483647\r\n$3\r\nDEL\r\n"
        };
        client.send_raw(announcement)?;
        client.send_raw(b"x")?;
        clients.push(client);
    }
    std::thread::sleep(Duration::from_millis(500));
    let each = process::resident_bytes(server.pid())?.saturating_sub(before) / count;
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    felt.ensure_quick()?;
    ensure!(each <= 64 * 1024, "{each} bytes for each of {count} connections: over 64 KiB");
    Ok(format!("{count} connections at {:.1} KiB each, {felt}", each as f64 / 1024.0))
}

/// C3: clients that may not do anything, send for ever and never read.
pub(super) fn unread(context: &Context<'_>) -> Result<String> {
    let seconds = context.pick(2, 5);
    let mut server = context.server(&["--requirepass", "secret"])?;
    let before = process::resident_bytes(server.pid())?;
    let bystander = Bystander::start(&server, "secret")?;
    let port = server.port();
    let end = Instant::now() + Duration::from_secs(seconds);
    let closed: usize = std::thread::scope(|scope| {
        let floods: Vec<_> = (0..20)
            .map(|index| {
                scope.spawn(move || {
                    let Ok(mut client) = Client::connect(port) else {
                        return 0;
                    };
                    let _ = client.set_timeout(Duration::from_millis(300));
                    let flood: &[u8] = [b"GET a\r\n".as_slice(), b"PING\r\n", b"*1\r\n$4\r\nINFO\r\n"][index % 3];
                    let flood = flood.repeat(2_000);
                    while Instant::now() < end {
                        match client.send_raw(&flood) {
                            Err(e)
                                if !matches!(
                                    e.kind(),
                                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                                ) =>
                            {
                                return 1;
                            }
                            _ => {}
                        }
                    }
                    0
                })
            })
            .collect();
        floods.into_iter().map(|flood| flood.join().unwrap_or(0)).sum()
    });
    let grown = mebibytes(process::peak_resident_bytes(server.pid())?.saturating_sub(before));
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    felt.ensure_quick()?;
    ensure!(grown <= 64.0, "the server grew by {grown:.0} MiB: over 64 MiB");
    ensure!(closed >= 18, "only {closed} of 20 floods were closed");
    Ok(format!("{closed} of 20 closed, +{grown:.1} MiB, {felt}"))
}

/// C4: before authentication frames are small, and replies are no larger than ten times that.
pub(super) fn unauthenticated(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&["--requirepass", "secret"])?;
    let mut worst = 0.0_f64;
    let frames: [Vec<u8>; 5] = [
        b"*11\r\n".to_vec(),
        b"*1\r\n$16385\r\n".to_vec(),
        [b"PING ".as_slice(), &[b'x'; 70_000]].concat(),
        b"NOSUCH a b c d e f g h\r\n".repeat(200),
        b"GET a\r\n".repeat(500),
    ];
    for (index, frame) in frames.iter().enumerate() {
        let mut client = server.client();
        let _ = client.send_raw(frame);
        let (got, closed) = client.read_to_end(Duration::from_millis(200));
        ensure!(index > 2 || closed, "frame {index} leaves the connection open");
        // A refusal that closes comes once for a connection, whose opening cost more than that.
        if !closed {
            worst = worst.max(got.len() as f64 / frame.len() as f64);
        }
    }
    ensure!(worst <= 10.0, "{worst:.1} bytes of reply for each byte sent");
    ensure_alive(&mut server)?;
    Ok(format!("at most {worst:.1} bytes of reply for each byte sent"))
}

/// C5: connections that open, send nonsense and go.
pub(super) fn churn(context: &Context<'_>) -> Result<String> {
    let seconds = context.pick(2, 10);
    let mut server = context.server(&[])?;
    let before = process::descriptor_count(server.pid())?;
    let bystander = Bystander::start(&server, "")?;
    let port = server.port();
    let end = Instant::now() + Duration::from_secs(seconds);
    let opened: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|index| {
                scope.spawn(move || {
                    let mut opened = 0_usize;
                    let garbage: [&[u8]; 4] =
                        [b"*abc\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"*1\r\n$-5\r\n", b"'\r\n"];
                    while Instant::now() < end {
                        // Ports of the other end run out while they wait to be used again.
                        let Ok(mut client) = Client::connect(port) else {
                            std::thread::sleep(Duration::from_millis(5));
                            continue;
                        };
                        let _ = client.send_raw(garbage[(opened + index) % 4]);
                        if opened.is_multiple_of(8) {
                            let _ = client.read_to_end(Duration::from_millis(20));
                        }
                        opened += 1;
                    }
                    opened
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    let pid = server.pid();
    let left =
        wait_until("descriptors to come back", Duration::from_secs(10), || match process::descriptor_count(pid) {
            Ok(count) if count <= before + 2 => Ok(count),
            other => Err(format!("{other:?}, before {before}")),
        });
    felt.ensure_quick()?;
    Ok(format!("{:.0} connections/s, {left} descriptors after, {felt}", opened as f64 / seconds as f64))
}

/// C7: each limit cuts the client that passes it, and memory stays near the limits.
pub(super) fn limits(context: &Context<'_>) -> Result<String> {
    let mut server = context.server(&[
        "--client-query-buffer-limit",
        "1mb",
        "--client-output-buffer-limit",
        "normal 8mb 0 0 pubsub 8mb 4mb 2",
        "--maxmemory-clients",
        "20mb",
        "--timeout",
        "1",
    ])?;
    server.client().call(&["SET", "big", &"x".repeat(900_000)])?;
    let before = process::resident_bytes(server.pid())?;
    process::reset_peak(server.pid())?;
    let mut cut = Vec::new();

    let mut query = server.client();
    let _ = query.send_raw(b"*2\r\n$4\r\nPING\r\n$400000000\r\n");
    let sent = (0..64).map(|_| query.send_raw(&[b'x'; 65_536])).any(|result| result.is_err());
    cut.push(("query buffer over 1 MB", sent || query.closes_within(Duration::from_secs(3))));

    let mut output = server.client();
    let flood = b"GET big\r\n".repeat(40);
    let failed = output.send_raw(&flood).is_err();
    std::thread::sleep(Duration::from_millis(600));
    cut.push(("unread replies over 8 MB", failed || gone(&mut output)));

    let mut listener = server.client();
    listener.run("SUBSCRIBE c");
    let mut publisher = server.client();
    for _ in 0..30 {
        publisher.call(&["PUBLISH", "c", &"x".repeat(900_000)])?;
    }
    cut.push(("unread messages over 8 MB", gone(&mut listener)));

    let mut idle = server.client();
    idle.run("PING");
    cut.push(("idle over 1 s", idle.closes_within(Duration::from_secs(5))));

    let mut crowd = Vec::new();
    for _ in 0..60 {
        let mut client = server.client();
        let _ = client.send_raw(b"*2\r\n$4\r\nPING\r\n$900000\r\n");
        let _ = client.send_raw(&vec![b'x'; 800_000]);
        crowd.push(client);
    }
    std::thread::sleep(Duration::from_millis(500));
    let evicted = server.client().info("evicted_clients").and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    cut.push(("clients' memory over 20 MB", evicted > 0));

    let grown = mebibytes(process::peak_resident_bytes(server.pid())?.saturating_sub(before));
    ensure_alive(&mut server)?;
    let kept: Vec<&str> = cut.iter().filter(|(_, done)| !done).map(|(what, _)| *what).collect();
    ensure!(kept.is_empty(), "not cut: {}", kept.join("; "));
    ensure!(grown <= 64.0, "the server grew by {grown:.0} MiB");
    Ok(format!("{} limits hold, {evicted} clients evicted, peak +{grown:.1} MiB", cut.len()))
}

/// Whether the other end closed, after what it had already sent.
fn gone(client: &mut Client) -> bool {
    client.read_to_end(Duration::from_millis(500)).1
}
