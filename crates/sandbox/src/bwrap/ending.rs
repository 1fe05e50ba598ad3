//! Endings, read from exit codes and from the channel of the driver.
//!
//! What a program prints decides nothing: a correct one may print "out of memory". A program that exhausts its memory ends
//! with an exit code or a signal like any other. So does one that reaches the bound on processor time or on the size of a
//! file. A program can choose each of these codes itself, so none of them means that wall time or output are used up: the
//! supervisor reports that.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Ending;
use crate::checks::{exception, read_value};

/// Bytes of the line before a result that tells its kind.
pub(super) const KIND_LIMIT: usize = 16;

/// Names of signals by their number on Linux.
const SIGNALS: [(i32, &str); 17] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGSYS, "SIGSYS"),
];

/// Returns the exit code of the guest from the JSON texts that bubblewrap writes. `None` if the guest was never started.
pub(super) fn exit_code(status: &[u8]) -> Option<i32> {
    #[derive(Deserialize)]
    struct Status {
        #[serde(rename = "exit-code")]
        exit_code: Option<i32>,
        #[serde(flatten)]
        _others: std::collections::BTreeMap<String, IgnoredAny>,
    }
    let texts = serde_json::Deserializer::from_slice(status).into_iter::<Status>();
    texts.map_while(Result::ok).filter_map(|status| status.exit_code).last()
}

/// Returns the ending of a function and the value that it returned, from what the driver reported.
pub(super) fn of_function(code: i32, channel: &[u8]) -> (Ending, Option<String>) {
    if code != 0 {
        return (of_code(code), None);
    }
    let mut lines = channel.splitn(2, |byte| *byte == b'\n');
    let (kind, text) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    match kind {
        b"returned" => match read_value(text) {
            Ok(value) => (Ending::Finished, Some(value)),
            Err(ending) => (ending, None),
        },
        b"threw" => (Ending::Threw(exception(text)), None),
        b"not loaded" => (Ending::NotLoaded(exception(text)), None),
        b"not json" => (Ending::NotJson(exception(text)), None),
        b"out of memory" => (Ending::OutOfMemory, None),
        _ => (Ending::Exited(0), None),
    }
}

/// Returns the ending of a program.
pub(super) fn of_code(code: i32) -> Ending {
    match code - 128 {
        _ if code == 0 => Ending::Finished,
        signal => match SIGNALS.iter().find(|(number, _)| *number == signal) {
            Some((_, name)) => Ending::Crashed((*name).to_owned()),
            None => Ending::Exited(code),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{exit_code, of_code, of_function};
    use crate::Ending;

    #[test]
    fn a_status_without_an_exit_code_is_of_a_guest_that_never_started() {
        assert_eq!(exit_code(b"{ \"child-pid\": 4 }\n"), None);
        assert_eq!(exit_code(b"{ \"child-pid\": 4, \"net-namespace\": 1 }\n{ \"exit-code\": 3 }\n"), Some(3));
    }

    #[test]
    fn exit_codes_above_128_are_signals() {
        assert_eq!(of_code(0), Ending::Finished);
        assert_eq!(of_code(137), Ending::Crashed("SIGKILL".to_owned()));
        assert_eq!(of_code(139), Ending::Crashed("SIGSEGV".to_owned()));
        assert_eq!(of_code(152), Ending::Crashed("SIGXCPU".to_owned()));
        assert_eq!(of_code(153), Ending::Crashed("SIGXFSZ".to_owned()));
        assert_eq!(of_code(200), Ending::Exited(200));
    }

    #[test]
    fn a_result_is_one_json_text() {
        assert_eq!(of_function(0, b"returned\n[1]"), (Ending::Finished, Some("[1]".to_owned())));
        for (forged, ending) in [
            (&b""[..], Ending::Exited(0)),
            (b"returned", Ending::NotJson("EOF while parsing a value at line 1 column 0".to_owned())),
            (b"lies\n1", Ending::Exited(0)),
            (b"threw\nE", Ending::Threw("E".to_owned())),
            (b"not loaded\nE", Ending::NotLoaded("E".to_owned())),
            (b"not json\nE", Ending::NotJson("E".to_owned())),
        ] {
            assert_eq!(of_function(0, forged), (ending, None), "{forged:?}");
        }
        assert!(matches!(of_function(0, b"returned\n1returned\n2"), (Ending::NotJson(_), None)));
    }
}
