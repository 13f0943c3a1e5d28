//! Moves as they go on: bars that are drawn anew on a terminal, lines in a pipe.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::http::Client;
use crate::shapes::Move;

use super::commands::Outcome;
use super::show;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(400);
/// Between two lines for a move in a pipe.
const LINE_PERIOD: Duration = Duration::from_secs(1);
/// How long a manager may be away: another one begins to lead meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
const BAR: u64 = 24;
/// Moves that fit a screen.
const SHOWN_MAX: usize = 20;

/// Shows moves until they are over: `wanted`, or all that go on now. The exit code is 1 if one failed.
pub(super) fn moves(client: &Client, wanted: Option<&[u64]>, is_terminal: bool) -> Outcome {
    let mut wanted: Option<Vec<u64>> = wanted.map(<[u64]>::to_vec);
    let mut drawn = 0;
    let (mut last_line, mut last_answer) = (None::<Instant>, Instant::now());
    loop {
        let all: Vec<Move> = match client.get("/moves") {
            Ok(all) => all,
            Err(failure) if failure.status.is_none_or(|status| status >= 409) && last_answer.elapsed() < PATIENCE => {
                std::thread::sleep(PERIOD);
                continue;
            }
            Err(failure) => return Err(failure.into()),
        };
        last_answer = Instant::now();
        let wanted = wanted.get_or_insert_with(|| all.iter().filter(|one| !one.is_over()).map(|one| one.id).collect());
        let shown: Vec<&Move> = all.iter().filter(|one| wanted.contains(&one.id)).collect();
        // One that is not listed any more ended long ago.
        let is_over = shown.iter().all(|one| one.is_over());
        if is_terminal {
            draw(&shown, &mut drawn);
        } else if is_over || last_line.is_none_or(|last| last.elapsed() >= LINE_PERIOD) {
            last_line = Some(Instant::now());
            for one in &shown {
                print(&format!("{}\n", line(one).replace("  ", "\t")));
            }
        }
        if is_over {
            if shown.is_empty() {
                print("no moves\n");
            }
            return Ok(i32::from(shown.iter().any(|one| one.stage == "failed")));
        }
        std::thread::sleep(PERIOD);
    }
}

/// Draws over what was drawn before.
fn draw(shown: &[&Move], drawn: &mut usize) {
    let mut text = if *drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    // Those that go on matter most.
    let mut lines: Vec<&&Move> = shown.iter().collect();
    lines.sort_by_key(|one| (one.is_over(), one.id));
    let mut count = 0;
    for one in lines.iter().take(SHOWN_MAX) {
        text.push_str(&format!("\x1b[2K{}\n", line(one)));
        count += 1;
    }
    if shown.len() > SHOWN_MAX {
        let over = shown.iter().filter(|one| one.is_over()).count();
        text.push_str(&format!("\x1b[2K… {} moves in all, {over} are over\n", shown.len()));
        count += 1;
    }
    *drawn = count;
    print(&text);
}

/// A move in a line.
fn line(one: &Move) -> String {
    let percent = show::percent(one);
    let filled = BAR * percent / 100;
    let bar: String = (0..BAR).map(|place| if place < filled { '#' } else { '.' }).collect();
    let mut text = format!(
        "move {}  group {} to {}  {} slots  [{bar}] {percent} %  {}  {}  {}/s",
        one.id,
        one.from,
        one.to,
        one.slot_count,
        show::stage(one),
        show::size(one.bytes),
        show::size(one.rate)
    );
    if let Some(eta) = one.eta_ms.filter(|_| !one.is_over()) {
        text.push_str(&format!("  {} left", show::span(eta)));
    }
    if !one.error.is_empty() {
        let error: String = one.error.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
        text.push_str(&format!("  {error}"));
    }
    text
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to tell if the pipe is closed.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_and_how_long() {
        let one = Move {
            id: 7,
            from: 1,
            to: 2,
            slot_count: 100,
            stage: "copying".into(),
            state: "copying".into(),
            keys: 50,
            total_keys: 100,
            bytes: 1 << 20,
            rate: 1 << 20,
            eta_ms: Some(1_000),
            ..Move::default()
        };
        assert_eq!(
            line(&one),
            "move 7  group 1 to 2  100 slots  [############............] 50 %  copying  1.0 MiB  1.0 MiB/s  1.0s left"
        );
    }
}
