//! C1 and C6: more clients than is comfortable, and more than are let in.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::{Client, process};

use super::bystander::Bystander;
use super::{Context, ensure_alive, mebibytes};

/// A command that is never whole: what a slow client leaves behind.
const BEGINNING: &[u8] = b"*3\r\n$3\r\nSET\r\n$4\r\nslow\r\n$1000\r\n";
/// Bytes of its value that the dripping ones send, one at a time.
const DRIPS: usize = 20;

/// C1: clients that begin a command and do not end it, a seventh of them sending a byte now and then.
pub(super) fn slow(context: &Context<'_>) -> Result<String> {
    let count = context.pick(1_500, 10_000);
    let mut server = context.server(&["--maxclients", "20000"])?;
    let before = process::resident_bytes(server.pid())?;
    let bystander = Bystander::start(&server, "")?;
    let began = Instant::now();
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let mut client = Client::connect(server.port()).context("connecting")?;
        client.send_raw(BEGINNING)?;
        clients.push(client);
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    for _ in 0..DRIPS {
        for client in clients.iter_mut().step_by(7) {
            client.send_raw(b"x")?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let grown = process::resident_bytes(server.pid())?.saturating_sub(before);
    let each = grown as f64 / count as f64;
    // One that goes on is served as any other.
    let mut last = clients.swap_remove(0);
    last.send_raw(&[b'x'; 1000 - DRIPS])?;
    last.send_raw(b"\r\n")?;
    let (got, _) = last.read_to_end(Duration::from_millis(500));
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    felt.ensure_quick()?;
    ensure!(got == b"+OK\r\n", "a slow client that sent all was answered {:?}", String::from_utf8_lossy(&got));
    ensure!(each <= 16.0 * 1024.0, "{each:.0} bytes for each of {count} connections: over 16 KiB");
    ensure!(mebibytes(grown) <= 200.0, "{count} connections took {:.0} MiB: over 200 MiB", mebibytes(grown));
    Ok(format!("{count} connections at {:.1} KiB each, {rate:.0} connections/s, {felt}", each / 1024.0))
}

/// C6: past `maxclients` clients are told so; who is in feels nothing, and the operator's socket still lets one in.
pub(super) fn too_many(context: &Context<'_>) -> Result<String> {
    let (most, tried) = context.pick((100, 150), (10_000, 15_000));
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("socket");
    let (limit, path) = (most.to_string(), socket.display().to_string());
    let server = context.server(&["--maxclients", &limit, "--unixsocket", &path])?;
    let bystander = Bystander::start(&server, "")?;
    let (mut inside, mut refused) = (Vec::new(), 0_usize);
    for _ in 0..tried {
        let mut client = Client::connect(server.port())?;
        // A refused one may be closed before it has sent anything.
        let _ = client.send_raw(b"PING\r\n");
        let reply = client.read()?;
        if reply.is_error() {
            ensure!(reply.to_string().contains("ERR max number of clients reached"), "a client was refused by {reply}");
            refused += 1;
        } else {
            inside.push(client);
        }
    }
    let served = inside.iter_mut().map(|client| usize::from(client.call(&["PING"]).is_ok())).sum::<usize>();
    let mut operator = Client::connect_unix(&socket)?;
    let told = operator.info("rejected_connections").and_then(|count| count.parse::<usize>().ok());
    let felt = bystander.finish()?;
    // That the operator was answered shows that the server lives.
    felt.ensure_quick()?;
    ensure!(served == inside.len() && (most - 2..=most).contains(&served), "{served} of {most} places are served");
    ensure!(served + refused == tried, "{served} served and {refused} refused of {tried}");
    ensure!(told.is_some_and(|told| told >= refused), "rejected_connections is {told:?} after {refused} refusals");
    Ok(format!("{served} in, {refused} refused, the operator's socket answers, {felt}"))
}
