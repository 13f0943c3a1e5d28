//! Combinations of options that contradict each other.

use std::net::IpAddr;

use super::{HashTag, OnError, ReadFrom};
use crate::{keys::Distribution, options::Options, values};

/// Rejects combinations that contradict each other. The error is a sentence for stderr.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    let extended = &options.extended;
    if options.tls && options.socket.is_some() {
        return Err("--tls and -s exclude each other: only TCP connections can be encrypted".to_owned());
    }
    if extended.duration.is_some() && options.requests_given {
        return Err("-n and --duration exclude each other: leave one of them out".to_owned());
    }
    if extended.duration.is_some() && extended.per_client.is_some() {
        return Err("--duration and --per-client exclude each other".to_owned());
    }
    if !extended.cooldown.is_zero() && extended.duration.is_none() {
        return Err("--cooldown needs --duration: without it the load ends with the last request".to_owned());
    }
    if extended.rate.is_some_and(|rate| rate.per_second <= 0.0)
        && extended.rate_steps.is_empty()
        && extended.find_max.is_none()
    {
        return Err("--arrival and --max-backlog need a --rate".to_owned());
    }
    if !extended.ramp_clients.is_empty() {
        if extended.duration.is_some() || options.requests_given || extended.per_client.is_some() {
            return Err(
                "--ramp-clients says how long its steps are: leave out -n, --duration and --per-client".to_owned()
            );
        }
        if !extended.rate_steps.is_empty() || extended.find_max.is_some() {
            return Err("--ramp-clients, --rate-steps and --find-max exclude each other".to_owned());
        }
    }
    let has_mix = extended.mix.is_some() || !extended.operations.is_empty();
    if has_mix && !options.command.is_empty() {
        return Err("--mix and a command exclude each other".to_owned());
    }
    check_keys(options)?;
    check_values(options)?;
    check_replay(options)?;
    check_agents(options)?;
    if extended.read_from != ReadFrom::Primaries && !options.cluster {
        return Err("--rfr needs --cluster".to_owned());
    }
    if extended.multipath && (options.socket.is_some() || !extended.source_addresses.is_empty()) {
        return Err("--mptcp goes neither with -s nor with --source".to_owned());
    }
    if extended.max_errors.is_some() && extended.on_error == OnError::Stop {
        return Err(
            "--max-errors needs --on-error count or reconnect: by default the first error ends the run".to_owned()
        );
    }
    Ok(())
}

fn check_keys(options: &Options) -> Result<(), String> {
    let extended = &options.extended;
    let has_range = options.keyspace.is_some() || extended.key_max.is_some();
    // The kinds without repeats can have as many keys as there are requests.
    let is_counted = extended.keys.is_some_and(Distribution::is_without_repeats) && options.request_total().is_some();
    if extended.keys.is_some() && !has_range && !is_counted {
        return Err("--keys and --sequential need -r or --key-max".to_owned());
    }
    if let Some(max) = extended.key_max
        && max < extended.key_min
    {
        return Err("--key-max is below --key-min".to_owned());
    }
    for operation in &extended.operations {
        let low = operation.key_min.unwrap_or(extended.key_min);
        if operation.key_max.or(extended.key_max).is_some_and(|max| max < low) {
            return Err(format!("--op {}: key-max is below key-min", operation.name));
        }
    }
    if options.cluster && extended.hash_tag == Some(HashTag::None) {
        return Err(
            "--hash-tag none would send keys to nodes that do not have them: leave out --cluster and go through \
                    a proxy"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_values(options: &Options) -> Result<(), String> {
    let extended = &options.extended;
    if extended.verify {
        let own = extended.operations.iter().flat_map(|operation| &operation.sizes);
        let least = extended.sizes.iter().chain(own).copied().min();
        if least.unwrap_or(options.value_bytes) < values::CHECKED_BYTES_MIN
            || (extended.sizes.is_empty() && options.value_bytes < values::CHECKED_BYTES_MIN)
        {
            return Err(format!("--verify needs values of {} bytes or more: add -d 64", values::CHECKED_BYTES_MIN));
        }
        if options.tracking {
            return Err("--verify and --enable-tracking exclude each other".to_owned());
        }
    }
    if extended.dataset.is_some() && options.command.is_empty() {
        return Err("--dataset needs a command with __field:NAME__ in it".to_owned());
    }
    Ok(())
}

fn check_replay(options: &Options) -> Result<(), String> {
    let extended = &options.extended;
    let has_test = !options.command.is_empty() || options.tests.is_some() || extended.mix.is_some();
    if (extended.replay.is_some() || extended.record.is_some()) && has_test {
        return Err("--replay and --record exclude a command, -t and --mix".to_owned());
    }
    if extended.replay.is_some() && extended.record.is_some() {
        return Err("--replay and --record exclude each other".to_owned());
    }
    if extended.record.is_some() && extended.duration.is_none() {
        return Err("--record needs to know how long: add --duration 60s".to_owned());
    }
    if extended.replay.is_some() {
        let has_rate = extended.rate.is_some() || !extended.rate_steps.is_empty() || extended.find_max.is_some();
        if has_rate {
            return Err("--replay has its own pace: use --speed instead of a rate".to_owned());
        }
        let is_other = options.cluster || options.keep_alive == 0 || extended.cleanup;
        if is_other || extended.per_client.is_some() || extended.verify {
            return Err("--replay goes with none of --cluster, -k 0, --per-client, --verify and --cleanup".to_owned());
        }
    }
    Ok(())
}

fn check_agents(options: &Options) -> Result<(), String> {
    let extended = &options.extended;
    if extended.agent.is_some() {
        if !extended.agents.is_empty() {
            return Err("--agent waits for jobs, --agents gives them: use one of them".to_owned());
        }
        return Ok(());
    }
    if !extended.allowed_targets.is_empty() {
        return Err("--allow-target is for an --agent".to_owned());
    }
    if extended.agents.is_empty() {
        if extended.tolerated_agents > 0 {
            return Err("--tolerate-agents needs --agents".to_owned());
        }
        return Ok(());
    }
    let here_only = [
        (options.socket.is_some(), "-s"),
        (options.idle, "-I"),
        (extended.replay.is_some(), "--replay"),
        (extended.record.is_some(), "--record"),
        (extended.dataset.is_some(), "--dataset"),
        (extended.server_pid.is_some(), "--server-pid"),
    ];
    if let Some((_, name)) = here_only.iter().find(|(is_given, _)| *is_given) {
        return Err(format!("{name} is a matter of one machine: it does not go with --agents"));
    }
    if extended.tolerated_agents >= extended.agents.len() {
        return Err("--tolerate-agents must be less than the number of --agents".to_owned());
    }
    if options.client_count() < extended.agents.len() {
        return Err(format!("{} agents need a client each: raise -c", extended.agents.len()));
    }
    Ok(())
}

/// Whether a host as typed is this machine.
pub(crate) fn is_loopback_name(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
