//! A few thousand inputs for each target in every run of the tests.

use crate::TARGETS;
use crate::mutate::mutate;

#[test]
fn every_target_takes_its_seeds_and_what_becomes_of_them() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        let mut random = fastrand::Rng::with_seed(3);
        for seed in &seeds {
            (target.run)(seed);
            for _ in 0..500 {
                let mut bytes = seed.clone();
                mutate(&mut random, &mut bytes, &seeds, target.words);
                (target.run)(&bytes);
            }
        }
        (target.run)(b"");
    }
}

#[test]
fn names_are_told_apart() {
    for (index, target) in TARGETS.iter().enumerate() {
        assert!(TARGETS[..index].iter().all(|other| other.name != target.name), "{} twice", target.name);
    }
}
