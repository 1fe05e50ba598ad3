//! Crashes of the service: no chain forks, and no request has two receipts.

use std::thread;

use black_box::VerificationProcess;
use black_box::cli::Dev;
use rustix::process::Signal;

use crate::{expect_whole, register_all, request};

/// The points between signing, storing, sending and answering.
const POINTS: [&str; 3] = ["receipt-signed", "receipt-stored", "log-answered"];

#[test]
fn a_crash_at_any_point_of_a_receipt_never_forks_its_chain() {
    let dev = Dev::start();
    for (number, point) in POINTS.iter().cycle().take(9).enumerate() {
        let service = VerificationProcess::start_until(&dev.folder, point);
        // The process may have answered before it sent the statement.
        let _ = service.verify(&request(number));
        service.wait();
    }
    let service = VerificationProcess::start(&dev.folder);
    register_all(&service, POINTS.len() * 3);
    expect_whole(&dev.folder, service.issuer(), POINTS.len() * 3);
}

#[test]
fn kill_9_under_load_never_forks_a_chain() {
    const REQUESTS: usize = 24;
    let dev = Dev::start();
    for round in 0..4 {
        let service = VerificationProcess::start(&dev.folder);
        thread::scope(|scope| {
            for client in 0..3 {
                let service = &service;
                scope.spawn(move || {
                    for number in (client..REQUESTS).step_by(3).take(2 * (round + 1)) {
                        let _ = service.verify(&request(number));
                    }
                });
            }
            // The first answer of this round: the other clients are in the middle of theirs.
            let _ = service.verify(&request(6 * round));
            service.signal(Signal::KILL);
        });
    }
    let service = VerificationProcess::start(&dev.folder);
    register_all(&service, REQUESTS);
    expect_whole(&dev.folder, service.issuer(), REQUESTS);
}
