//! CPU time and memory of processes, from `/proc`: the resolution of CPU time is a tick of 10 ms, enough for measurements
//! of seconds.

use std::fs;

/// A process according to `/proc/PID/stat`, with CPU times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    own: u64,
    reaped: u64,
}

/// Returns the CPU seconds of these processes and all their children, including ended ones.
pub(crate) fn cpu_of(roots: &[u32]) -> f64 {
    seconds(roots.iter().map(|root| tree(*root)).sum())
}

/// Returns the CPU seconds of this process, without its children, which are the measured processes.
pub(crate) fn own_cpu() -> f64 {
    seconds(stat_of(std::process::id()).map_or(0, |process| process.own))
}

/// Returns the resident memory of a process in bytes (`VmRSS`); 0 if it has ended.
pub(crate) fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib << 10)
}

/// Returns the parent of a process; for a backend of PostgreSQL, the server process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat_of(pid).map(|process| process.parent)
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn tree(root: u32) -> u64 {
    let Some(process) = stat_of(root) else { return 0 };
    let children = children(root).into_iter().filter_map(stat_of).map(|child| child.own);
    process.own + process.reaped + children.sum::<u64>()
}

fn children(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(of)).collect()
}

fn stat_of(pid: u32) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses `/proc/PID/stat` (proc(5)). The process name, in parentheses, may contain anything; the fields after it have
/// fixed positions.
fn parse(stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        own: number(11)? + number(12)?,
        reaped: number(13)? + number(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 0 0 0 150 50 3 4 20 0 1 0 100 1 1";
        assert_eq!(parse(stat), Some(Process { parent: 7, own: 200, reaped: 7 }));
    }

    #[test]
    fn what_is_no_stat_line_is_no_process() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("42 (a) S 7"), None);
    }

    #[test]
    fn this_process_uses_cpu_and_memory_and_has_a_parent() {
        let begun = own_cpu();
        while own_cpu() < begun + 0.02 {}
        assert!(parent(std::process::id()).is_some());
        assert!(memory_of(std::process::id()) > 1 << 20);
    }
}
