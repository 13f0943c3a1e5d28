//! Reading the values of options, one at a time.

use std::{path::PathBuf, time::Duration};

use super::{
    Arrival, ErrorBudget, Extended, HashTag, Live, OnError, OperationSettings, Output, Progress, Rate, ReadFrom, Speed,
    TargetPolicy, Ttl, ValueKind, table,
};
use crate::{agents, assertions, keys, keys::Distribution, options, places};

/// Takes over one option. The error is a sentence for stderr.
pub(crate) fn apply(extended: &mut Extended, name: &str, value: &str) -> Result<(), String> {
    let wrong = |expected: &str| format!("Invalid value '{value}' for {name}: expected {expected}");
    let time = || options::duration(value).ok_or_else(|| wrong("a time such as 500ms, 10s or 2m"));
    let count = || value.parse::<u64>().map_err(|_| wrong("a number"));
    extended.is_used |= !table::VALKEY.contains(&name);
    match name {
        "--duration" => extended.duration = Some(time()?),
        "--warmup" => extended.warmup = time()?,
        "--cooldown" => extended.cooldown = time()?,
        "--ramp-clients" => {
            let expected = "FIRST:LAST:STEP:TIME such as 10:100:10:5s";
            (extended.ramp_clients, extended.ramp_step) = ramp(value).ok_or_else(|| wrong(expected))?;
        }
        "--timeout" => extended.timeout = Some(time()?),
        "--timeline" => extended.timeline = Some(time()?),
        "--rate" | "--rps" => {
            let text = value.strip_suffix("/s").unwrap_or(value);
            let per_second = rate_number(text).ok_or_else(|| wrong("requests per second"))?;
            let rate = extended.rate.get_or_insert(DEFAULT_RATE);
            rate.per_second = per_second;
            rate.open_loop = name == "--rate";
        }
        "--arrival" => {
            extended.rate.get_or_insert(DEFAULT_RATE).arrival = match value {
                "fixed" | "constant" => Arrival::Fixed,
                "poisson" => Arrival::Poisson,
                _ => return Err(wrong("fixed or poisson")),
            };
        }
        "--max-backlog" => extended.rate.get_or_insert(DEFAULT_RATE).max_backlog = count()?,
        "--per-client" => extended.per_client = Some(count()?),
        "--keys" => {
            let expected = "uniform, seq, seq-per-client, unique, zipf:S, gauss:SD, latest or hot:P%:K%";
            let keys = keys::parse_distribution(value).ok_or_else(|| wrong(expected))?;
            extended.keys = Some(keys);
        }
        "--sequential" => extended.keys = Some(Distribution::Sequential),
        "--key-min" => extended.key_min = count()?,
        "--key-max" => extended.key_max = Some(count()?),
        "--key-prefix" => value.clone_into(&mut extended.key_prefix),
        "--spread" => extended.spread = true,
        "--hash-tag" => {
            extended.hash_tag = Some(match value {
                "spread" => HashTag::Spread,
                "none" => HashTag::None,
                _ => return Err(wrong("spread or none")),
            });
        }
        "--op" => extended.operations.push(operation(value)?),
        "--ttl" => extended.ttls = ttls(value).ok_or_else(|| wrong("a time or two such as 60s, 500ms-2s or 1m-5m"))?,
        "--verify" => extended.verify = true,
        "--dataset" => extended.dataset = Some(PathBuf::from(value)),
        "--maxdocs" => extended.dataset_rows_max = usize::try_from(count()?).unwrap_or(usize::MAX),
        "--num-functions" => {
            extended.functions = in_range(count()?, 1..=FUNCTIONS_MAX).ok_or_else(|| wrong("1 to 100000"))?;
        }
        "--num-keys-in-fcall" => {
            extended.function_keys = in_range(count()?, 0..=FUNCTION_KEYS_MAX).ok_or_else(|| wrong("0 to 1000"))?;
        }
        "--record" => extended.record = Some(PathBuf::from(value)),
        "--replay" => extended.replay = Some(PathBuf::from(value)),
        "--speed" => {
            let times = || {
                value
                    .strip_suffix('x')
                    .unwrap_or(value)
                    .parse()
                    .ok()
                    .filter(|times: &f64| times.is_normal() && *times > 0.0)
            };
            extended.speed = match value {
                "max" => Speed::Unlimited,
                _ => Speed::Times(times().ok_or_else(|| wrong("a number such as 2 or 0.5, or max"))?),
            };
        }
        "--agent" => extended.agent = Some(value.to_owned()),
        "--agents" => {
            let expected = "host:port,host:port=WEIGHT";
            extended.agents.extend(agents::parse_addresses(value).ok_or_else(|| wrong(expected))?);
        }
        "--token-file" => extended.token_file = Some(PathBuf::from(value)),
        "--allow-target" => {
            let expected = "addresses such as 10.0.0.5, 10.0.0.5:6379 or 10.0.0.0/24:6379";
            extended.allowed_targets.extend(agents::parse_allowed(value).ok_or_else(|| wrong(expected))?);
        }
        "--tolerate-agents" => extended.tolerated_agents = usize::try_from(count()?).unwrap_or(usize::MAX),
        "--force" => extended.force = true,
        "--cleanup" => extended.cleanup = true,
        "--yes" => extended.yes = true,
        "--self-check" => extended.self_check = true,
        "--mptcp" => extended.multipath = true,
        "--target-policy" => {
            extended.target_policy = match value {
                "rr" => TargetPolicy::RoundRobin,
                "split" => TargetPolicy::Split,
                _ => return Err(wrong("rr or split")),
            };
        }
        "--mix" => extended.mix = Some(value.to_owned()),
        "--size" => extended.sizes = sizes(value).ok_or_else(|| wrong("N, A-B or A,B,…"))?,
        "--value" => {
            let expected = "fixed, random or compressible:SHARE";
            extended.value = value_kind(value).ok_or_else(|| wrong(expected))?;
        }
        "--on-error" => {
            extended.on_error = match value {
                "stop" => OnError::Stop,
                "count" | "continue" => OnError::Count,
                "reconnect" => OnError::Reconnect,
                _ => return Err(wrong("stop, count or reconnect")),
            };
        }
        "--max-errors" => {
            let budget = match value.strip_suffix('%') {
                Some(percent) => percent.parse().ok().map(ErrorBudget::Percent),
                None => value.parse().ok().map(ErrorBudget::Count),
            };
            extended.max_errors = Some(budget.ok_or_else(|| wrong("a number or a percentage"))?);
        }
        "--output" => {
            extended.output = match value {
                "text" | "csv" | "redis" => Output::Redis,
                "json" => Output::Json,
                "csv-ext" => Output::CsvExtended,
                "md" | "markdown" => Output::Markdown,
                "html" => Output::Html,
                _ => return Err(wrong("text, json, csv, csv-ext, md or html")),
            };
        }
        "--output-file" | "-o" => extended.output_file = Some(PathBuf::from(value)),
        "--hdr-log" => extended.hdr_log = Some(PathBuf::from(value)),
        "--percentiles" => {
            let list: Option<Vec<f64>> = value.split(',').map(|part| part.trim().parse().ok()).collect();
            let list = list.filter(|list| list.iter().all(|p| (0.0..=100.0).contains(p)));
            extended.percentiles = list.ok_or_else(|| wrong("numbers from 0 to 100"))?;
        }
        "--assert" => extended.assertions.extend(assertions::parse_list(value)?),
        "--find-max" => extended.find_max = Some(assertions::parse_list(value)?),
        "--rate-steps" => {
            let list: Option<Vec<f64>> = value.split(',').map(rate_number).collect();
            extended.rate_steps = list.ok_or_else(|| wrong("rates such as 1000,2000,5k"))?;
        }
        "--baseline" => extended.baseline = Some(PathBuf::from(value)),
        "--max-regress" => {
            let text = value.strip_suffix('%').unwrap_or(value);
            extended.max_regress_percent = text.parse().map_err(|_| wrong("a percentage"))?;
        }
        "--legacy-latency" => extended.legacy_latency = true,
        "--legacy-output" | "--legacy-output=4" => {
            if name == "--legacy-output" && value != "4" {
                return Err(wrong("4"));
            }
            extended.legacy_output = true;
        }
        "--progress" => {
            extended.progress = match value {
                "always" => Progress::Compatible,
                "tty" => Progress::Terminal,
                "never" => Progress::Never,
                _ => return Err(wrong("always, tty or never")),
            };
        }
        "--tui" => {
            extended.live = match value {
                "auto" => Live::Auto,
                "yes" => Live::Always,
                "no" => Live::Never,
                _ => return Err(wrong("auto, yes or no")),
            };
        }
        "--prometheus" => extended.prometheus = Some(value.to_owned()),
        "--script" => extended.script = Some(PathBuf::from(value)),
        "--source" | "--source-ip" => {
            let expected = "addresses of this machine such as 10.0.0.1,10.0.0.5-10.0.0.9";
            extended.source_addresses = places::parse_sources(value).ok_or_else(|| wrong(expected))?;
        }
        "--connect-rate" => {
            let text = value.strip_suffix("/s").unwrap_or(value);
            extended.connect_rate = Some(rate_number(text).ok_or_else(|| wrong("connections per second"))?);
        }
        "--hold" => extended.hold = time()?,
        "--server-pid" => extended.server_pid = Some(value.parse().map_err(|_| wrong("a process id"))?),
        "--fairness" => extended.fairness = true,
        "--target" => {
            for part in value.split(',') {
                let target = part.rsplit_once(':').and_then(|(host, port)| {
                    let host = host.trim_matches(['[', ']']).to_owned();
                    port.parse().ok().map(|port| (host, port))
                });
                extended.targets.push(target.ok_or_else(|| wrong("host:port,host:port"))?);
            }
        }
        "--pin" => extended.cpus = cpus(value).ok_or_else(|| wrong("CPUs such as 0-3,6"))?,
        "--rfr" => {
            extended.read_from = match value {
                "no" => ReadFrom::Primaries,
                "yes" => ReadFrom::Replicas,
                "all" => ReadFrom::All,
                _ => return Err(wrong("no, yes or all")),
            };
        }
        _ => return Err(format!("{name} is not supported")),
    }
    Ok(())
}

/// Reads `1000`, `2.5k` or `1M`.
pub(crate) fn rate_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    let value: f64 = number.parse().ok()?;
    (value > 0.0 && value.is_finite()).then_some(value * factor)
}

/// Reads `A:B:STEP:T` into the numbers of clients and the time of each.
fn ramp(text: &str) -> Option<(Vec<usize>, Duration)> {
    let parts: Vec<&str> = text.split(':').collect();
    let [first, last, step, time] = parts.as_slice() else { return None };
    let (first, last, step): (usize, usize, usize) = (first.parse().ok()?, last.parse().ok()?, step.parse().ok()?);
    let time = options::duration(time).filter(|time| !time.is_zero())?;
    let is_fine = first > 0 && step > 0 && last >= first && (last - first) / step < RAMP_STEPS_MAX;
    if !is_fine {
        return None;
    }
    let mut counts: Vec<usize> = (first..=last).step_by(step).collect();
    if counts.last() != Some(&last) {
        counts.push(last);
    }
    Some((counts, time))
}

/// Reads a life or a range of lives. Requests are prebuilt, so a range is served by lives spread evenly over it.
fn ttls(text: &str) -> Option<Vec<Ttl>> {
    let milliseconds = |text: &str| {
        let time = options::duration(text)?.as_millis();
        u64::try_from(time).ok().filter(|ms| *ms > 0)
    };
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (milliseconds(low)?, milliseconds(high)?),
        None => (milliseconds(text)?, milliseconds(text)?),
    };
    if low > high || high > TTL_MS_MAX {
        return None;
    }
    // Whole seconds between whole seconds, as EX takes them.
    let unit = if low % 1_000 == 0 && high % 1_000 == 0 { 1_000 } else { 1 };
    let (low, high) = (low / unit, high / unit);
    let steps = (high - low).min(SIZE_STEPS as u64 - 1);
    let of_step = |step: u64| Ttl { ms: (low + (high - low) * step / steps.max(1)) * unit };
    Some((0..=steps).map(of_step).collect())
}

/// Reads `NAME weight=9 keys=zipf:0.99 … command=GET user:__rand_int__`.
fn operation(text: &str) -> Result<OperationSettings, String> {
    let wrong = |what: &str| format!("Invalid value '{text}' for --op: {what} (see --help mix)");
    let (settings, command) = match text.split_once("command=") {
        Some((settings, command)) => (settings, command.split_whitespace().map(str::to_owned).collect()),
        None => (text, Vec::new()),
    };
    let mut words = settings.split_whitespace();
    let name = words.next().filter(|name| !name.contains('=')).ok_or_else(|| wrong("expected a name first"))?;
    let mut operation = OperationSettings {
        name: name.to_owned(),
        weight: 1,
        command,
        keys: None,
        key_min: None,
        key_max: None,
        sizes: Vec::new(),
        ttls: Vec::new(),
    };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| wrong("expected setting=value"))?;
        let bad = || wrong(&format!("'{value}' is no value for {key}"));
        match key {
            "weight" => operation.weight = value.parse().map_err(|_| bad())?,
            "keys" => {
                let keys = keys::parse_distribution(value).filter(|keys| *keys != Distribution::PerClient);
                operation.keys = Some(keys.ok_or_else(bad)?);
            }
            "key-min" => operation.key_min = Some(value.parse().map_err(|_| bad())?),
            "key-max" => operation.key_max = Some(value.parse().map_err(|_| bad())?),
            "size" => operation.sizes = sizes(value).ok_or_else(bad)?,
            "ttl" => operation.ttls = ttls(value).ok_or_else(bad)?,
            _ => return Err(wrong(&format!("'{key}' is no setting of an operation"))),
        }
    }
    Ok(operation)
}

fn in_range(number: u64, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
    range.contains(&number).then_some(number)
}

fn sizes(text: &str) -> Option<Vec<usize>> {
    let text = text.strip_prefix("list:").unwrap_or(text);
    if let Some((low, high)) = text.split_once('-') {
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high > SIZE_MAX {
            return None;
        }
        // Requests are prebuilt: a range is served by sizes spread evenly over it.
        let steps = (high - low).clamp(1, SIZE_STEPS - 1);
        return Some((0..=steps).map(|step| low + (high - low) * step / steps).collect());
    }
    let list: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    list.filter(|list| !list.is_empty() && list.iter().all(|size| (1..=SIZE_MAX).contains(size)))
}

fn value_kind(text: &str) -> Option<ValueKind> {
    match text.split_once(':') {
        None if text == "fixed" => Some(ValueKind::Fixed),
        None if text == "random" => Some(ValueKind::Random),
        Some(("compressible", share)) => {
            let share: f64 = share.strip_suffix('%').map_or_else(
                || share.parse().ok(),
                |percent| percent.parse::<f64>().ok().map(|percent| percent / 100.0),
            )?;
            (0.0..=1.0).contains(&share).then_some(ValueKind::Compressible(share))
        }
        _ => None,
    }
}

fn cpus(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        if low > high || high >= 1_024 {
            return None;
        }
        list.extend(low..=high);
    }
    Some(list)
}

const DEFAULT_RATE: Rate = Rate { per_second: 0.0, arrival: Arrival::Fixed, max_backlog: 1_000_000, open_loop: true };
const SIZE_MAX: usize = 1 << 30;
const SIZE_STEPS: usize = 64;
const RAMP_STEPS_MAX: usize = 1_000;
/// Longest life of a key: ten years.
const TTL_MS_MAX: u64 = 10 * 366 * 24 * 3_600 * 1_000;
const FUNCTIONS_MAX: u64 = 100_000;
const FUNCTION_KEYS_MAX: u64 = 1_000;
