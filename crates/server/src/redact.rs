//! Keeps secrets out of everything that shows commands: SLOWLOG, MONITOR, logs.

use commands::table::{CommandId, CommandSpec};

/// What stands in the place of a secret, as in Redis.
const REDACTED: &[u8] = b"(redacted)";

/// Replaces the secret arguments of a command (the first is its name).
pub fn arguments(spec: &CommandSpec, mut args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    match spec.id {
        CommandId::Auth => hide_from(&mut args, 1),
        CommandId::AclSetuser => hide_from(&mut args, 2),
        CommandId::ConfigSet => {
            let mut index = 2;
            while index + 1 < args.len() {
                if crate::config::is_secret(&args[index]) {
                    args[index + 1] = REDACTED.to_vec();
                }
                index += 2;
            }
        }
        CommandId::Hello => {
            if let Some(at) = args.iter().position(|argument| argument.eq_ignore_ascii_case(b"auth")) {
                for index in at + 1..(at + 3).min(args.len()) {
                    args[index] = REDACTED.to_vec();
                }
            }
        }
        CommandId::Migrate => {
            if let Some(at) = args
                .iter()
                .position(|argument| argument.eq_ignore_ascii_case(b"auth") || argument.eq_ignore_ascii_case(b"auth2"))
            {
                for index in at + 1..(at + 3).min(args.len()) {
                    args[index] = REDACTED.to_vec();
                }
            }
        }
        _ => {}
    }
    args
}

fn hide_from(args: &mut [Vec<u8>], from: usize) {
    for argument in args.iter_mut().skip(from) {
        *argument = REDACTED.to_vec();
    }
}
