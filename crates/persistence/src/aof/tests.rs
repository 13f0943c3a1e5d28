#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::manifest::manifest_name;
use super::*;
use crate::disk::{Disk, Fault, Operation, SimulatedDisk};
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "log";

fn open(disk: &SimulatedDisk) -> std::io::Result<Log> {
    let directory = Path::new(DIR);
    let manifest = Manifest::load(disk, &directory.join(manifest_name("a")))?.unwrap_or_default();
    let read = disk.clone();
    Log::open(Arc::new(disk.clone()), directory, "a", manifest, |name| {
        read.read(directory.join(name)).map_or(0, |bytes| bytes.len() as u64)
    })
}

/// All commands that the log on this disk holds, by their first argument; the base is a log of commands here.
fn replay(disk: &SimulatedDisk) -> Vec<u32> {
    let directory = Path::new(DIR);
    let Some(manifest) = Manifest::load(disk, &directory.join(manifest_name("a"))).unwrap() else { return Vec::new() };
    let mut all = Vec::new();
    let names: Vec<&Part> = manifest.base.iter().chain(&manifest.increments).collect();
    for (index, part) in names.iter().enumerate() {
        let (file, _) = disk.open(&directory.join(&part.name)).unwrap();
        let mut frames = Frames::new(file, 0);
        loop {
            match frames.next_frame() {
                Ok(Frame::Command) => {
                    let number = std::str::from_utf8(frames.arguments()[0]).unwrap().parse().unwrap();
                    all.push(number);
                }
                Ok(Frame::Annotation) => {}
                Ok(Frame::End) => break,
                Err(FrameError::Truncated) if index + 1 == names.len() => break,
                Err(error) => panic!("{} is broken: {error:?}", part.name),
            }
        }
    }
    all
}

fn command(number: u32) -> Vec<u8> {
    let text = number.to_string();
    format!("*1\r\n${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Writes commands, syncs and rewrites at random; `acknowledged` follows what was forced to disk.
fn run(disk: &SimulatedDisk, rng: &mut fastrand::Rng, steps: u32, acknowledged: &mut u32) -> std::io::Result<()> {
    let mut log = open(disk)?;
    let mut next = 0;
    for _ in 0..steps {
        match rng.u8(..12) {
            0..=6 => {
                log.write(&command(next)).map_err(|error| error.error)?;
                next += 1;
            }
            7..=9 => {
                log.sync()?;
                *acknowledged = next;
            }
            _ => {
                log.sync()?;
                *acknowledged = next;
                log.begin_increment()?;
                let first = log.current_seq();
                let base: Vec<u8> = (0..next).flat_map(command).collect();
                if rng.bool() {
                    log.write(&command(next)).map_err(|error| error.error)?;
                    next += 1;
                }
                let mut file = disk.create(&log.directory().join("temp-base"))?;
                file.write_all(&base)?;
                file.sync()?;
                log.replace_base("temp-base", false, base.len() as u64, first, false)?;
            }
        }
    }
    Ok(())
}

/// The commands are those from 0 on, at least the acknowledged ones.
fn check(disk: &SimulatedDisk, acknowledged: u32, seed: u64) {
    let all = replay(disk);
    assert!(all.iter().enumerate().all(|(index, number)| index == *number as usize), "seed {seed}: {all:?}");
    assert!(all.len() >= acknowledged as usize, "seed {seed}: {} of {acknowledged} acknowledged are there", all.len());
}

#[test]
fn no_power_cut_loses_what_was_forced_to_disk() {
    for seed in 0..2_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = SimulatedDisk::new();
        let mut acknowledged = 0;
        let steps = rng.u32(1..30);
        run(&disk, &mut rng, steps, &mut acknowledged).unwrap();
        let after = disk.crash(|most| rng.usize(..=most));
        check(&after, acknowledged, seed);
    }
}

#[test]
fn no_failing_call_loses_what_was_forced_to_disk() {
    for seed in 0..40 {
        for call in 0..400 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let disk = SimulatedDisk::new();
            let errno = if rng.bool() { 28 } else { 5 };
            disk.set_fault(Some(Fault::Call(call, errno)));
            let mut acknowledged = 0;
            let steps = 25;
            let result = run(&disk, &mut rng, steps, &mut acknowledged);
            let failed = result.is_err();
            disk.set_fault(None);
            check(&disk, acknowledged, seed);
            let after = disk.crash(|most| rng.usize(..=most));
            check(&after, acknowledged, seed);
            if !failed && disk.calls() < call {
                break;
            }
        }
    }
}

#[test]
fn a_write_that_finds_no_room_leaves_no_part_behind() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk).unwrap();
    log.write(&command(0)).unwrap();
    disk.set_fault(Some(Fault::Room(5)));
    let error = log.write(&command(1)).unwrap_err();
    assert_eq!((error.written, error.is_torn), (5, false));
    assert_eq!(replay(&disk), [0]);
    disk.set_fault(None);
    log.write(&command(1)).unwrap();
    assert_eq!(replay(&disk), [0, 1]);
    assert_eq!(log.bytes(), 22);
}

#[test]
fn a_part_that_cannot_be_cut_off_is_cut_before_the_next_write() {
    let disk = SimulatedDisk::new();
    let mut log = open(&disk).unwrap();
    log.write(&command(0)).unwrap();
    disk.set_fault(Some(Fault::Room(5)));
    assert_eq!(log.write(&command(1)).unwrap_err().written, 5);
    disk.set_fault(Some(Fault::Every(Operation::Truncate, 5)));
    disk.set_fault(None);
    log.write(&command(1)).unwrap();
    assert_eq!(replay(&disk), [0, 1]);
}
