//! Checks in which form the decisions of a shard run: in the server module, a function or a script.
//! Also estimates the savings that the module would bring.

use tollgate_backend::{Info, Inspected, Role, ShardStatus};
use tollgate_policy::{RedisSettings, ShardSettings, StepForm, Topology};
use tollgate_redis::StepRuntime;

use super::{Finding, Level};

const CHECK: &str = "scripting";

/// The name of the server module.
const MODULE: &str = "tollgate";

/// The costs of one form of the step (module, function or script) for one fixed window, as
/// `docs/benchmarks.md` lists them.
struct Cost {
    /// Instructions of the server for a decision that is alone in its call.
    alone: u64,
    /// Instructions of the server for a decision that shares its call with 31 other decisions.
    shared: u64,
    /// Bytes of the server's memory for a subject.
    bytes: u64,
}

const FUNCTION: Cost = Cost { alone: 59_169, shared: 18_060, bytes: 145 };
const MODULE_WITH_KEYS: Cost = Cost { alone: 14_633, shared: 7_900, bytes: FUNCTION.bytes };
const MODULE_WITH_TABLES: Cost = Cost { alone: 10_501, shared: 1_230, bytes: 48 };

const GRANT: &str = "grant the user +tollgate.step, +tollgate.tight and +tollgate.look, or set `scripting: function`";

/// Reports in which form the decisions of a shard run, and how much the server module would save
/// for a shard with this number of `keys`. Checks that the form is the best form that the server
/// supports, and that the nodes use it now or after the first node has loaded it.
pub(super) fn check(
    redis: &RedisSettings,
    settings: &ShardSettings,
    status: &ShardStatus,
    inspected: &[Inspected],
    keys: u64,
) -> Option<Finding> {
    status.primary()?;
    let may_have_tables = !matches!(settings.topology, Topology::Cluster { .. });
    let with_tables =
        |form: &Cost| if may_have_tables { tables(form, keys) } else { String::new() };
    Some(match status.runs {
        StepRuntime::Tables => Finding::ok(
            CHECK,
            format!(
                "decisions run in the server module, with tables of subjects: {}",
                instructions(&MODULE_WITH_TABLES)
            ),
        ),
        StepRuntime::Module => Finding::ok(
            CHECK,
            format!(
                "decisions run in the server module: {}{}",
                instructions(&MODULE_WITH_KEYS),
                with_tables(&MODULE_WITH_KEYS)
            ),
        ),
        StepRuntime::Function if is_unused(redis, settings, inspected) => Finding::of(
            CHECK,
            Level::Advice,
            "decisions run as a function, although the server module is loaded: the user may not call it",
            GRANT,
        ),
        StepRuntime::Function => Finding::ok(
            CHECK,
            format!(
                "decisions run as a function: {}; the server module takes {} and {}{}",
                instructions(&FUNCTION),
                grouped(MODULE_WITH_KEYS.alone),
                grouped(MODULE_WITH_KEYS.shared),
                with_tables(&FUNCTION)
            ),
        ),
        StepRuntime::Script => Finding::of(
            CHECK,
            Level::Advice,
            "decisions run as a script, which is slower and is lost when a server restarts",
            "Redis 7 and Valkey support functions: grant the user +fcall and +function|load; \
             Redis 6.2 supports the server module too",
        ),
    })
}

/// Describes the instructions that one decision takes in `form`.
fn instructions(form: &Cost) -> String {
    let (alone, shared) = (grouped(form.alone), grouped(form.shared));
    format!("about {alone} instructions each, {shared} with 32 in a call")
}

/// Describes the costs of the module with tables. If the shard has keys, also compares the memory
/// that these `keys` need in tables with the memory that they need in `form`.
fn tables(form: &Cost, keys: u64) -> String {
    let Cost { alone, shared, bytes } = MODULE_WITH_TABLES;
    let processor = format!("; with tables it takes {} and {}", grouped(alone), grouped(shared));
    if keys == 0 {
        return processor;
    }
    let (now, then) = (megabytes(form.bytes, keys), megabytes(bytes, keys));
    let keys = grouped(keys);
    format!("{processor}, and at most {then} MB instead of {now} MB for the {keys} keys")
}

fn megabytes(bytes: u64, keys: u64) -> String {
    grouped(bytes.saturating_mul(keys).div_ceil(1_000_000))
}

/// Returns the digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns whether the module is loaded but not used: nodes would use the module, and a server of
/// the shard that accepts writes has loaded it.
fn is_unused(redis: &RedisSettings, settings: &ShardSettings, inspected: &[Inspected]) -> bool {
    redis.step == StepForm::Automatic
        && inspected
            .iter()
            .filter(|server| server.shard == settings.name && server.role == Role::DataServer)
            .filter_map(|server| server.report.as_ref().ok()?.info.as_ref())
            .any(|info| info.field("role") == Some("master") && has_module(info))
}

/// Returns whether a server has loaded the module.
pub(super) fn has_module(info: &Info) -> bool {
    let mut modules = info.fields("module");
    modules.any(|(_, value)| tollgate_backend::part(value, "name") == Some(MODULE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page of the benchmarks is the source of the numbers.
    #[test]
    fn the_costs_are_those_of_the_page() {
        let page = include_str!("../../../../../docs/benchmarks.md");
        let rows = |call: &str| {
            let start = format!("| one fixed window | {call} |");
            page.lines().find(move |line| line.starts_with(&start)).expect("a row of the module")
        };
        let forms = [FUNCTION, MODULE_WITH_KEYS, MODULE_WITH_TABLES];
        let costs = |of: fn(&Cost) -> u64| forms.iter().map(of).map(grouped).collect::<Vec<_>>();
        assert!(rows("1").ends_with(&format!("| {} |", costs(|form| form.alone).join(" | "))));
        assert!(rows("32").ends_with(&format!("| {} |", costs(|form| form.shared).join(" | "))));
        let bytes = format!("| {} | at most {} |", FUNCTION.bytes, MODULE_WITH_TABLES.bytes);
        assert!(page.contains(&bytes), "{bytes}");
    }

    #[test]
    fn numbers_have_groups_of_three_digits() {
        let numbers = [0, 999, 1_000, 59_169, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "59,169", "1,234,567"]);
    }

    #[test]
    fn the_memory_of_tables_is_that_of_the_keys_of_the_shard() {
        let text = tables(&FUNCTION, 2_000_000);
        assert!(text.ends_with("at most 96 MB instead of 290 MB for the 2,000,000 keys"), "{text}");
    }
}
