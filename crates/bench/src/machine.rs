//! The machine of a measurement, from `/proc`.

use std::fs;
use std::thread;

use crate::result::Machine;

/// Describes this machine; what cannot be read is empty.
pub(crate) fn describe() -> Machine {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let kib = field(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
    let load: Vec<String> = read("/proc/loadavg").split(' ').take(3).map(str::to_owned).collect();
    Machine {
        processor: field(&read("/proc/cpuinfo"), "model name"),
        processors: thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kib << 10,
        load_average: load.join(" "),
    }
}

/// Returns the value of the first line `NAME: VALUE`.
fn field(text: &str, name: &str) -> String {
    let of = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name() {
        let text = "model\t\t: 1\nmodel name\t: A CPU: fast\n";
        assert_eq!(field(text, "model name"), "A CPU: fast");
        assert_eq!(field(text, "none"), "");
    }
}
