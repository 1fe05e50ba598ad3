//! A disk without room: nothing is promised, `/readyz` says so, and the service recovers by itself.

use std::time::Duration;

use black_box::cli::Dev;
use black_box::{VerificationProcess, until};

use crate::{expect_whole, register_all, request};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// More requests than any room left on the disk holds.
const MOST_REQUESTS: usize = 500;

#[test]
fn a_disk_that_is_full_refuses_requests_until_there_is_room_again() {
    let dev = Dev::start();
    let service = VerificationProcess::start_on_a_small_disk(&dev.folder, 4_000);
    register_all(&service, 2);
    let disk = service.disk(&dev.folder);
    disk.fill(0);
    let is_refused = |number: usize| service.verify(&request(number)).unwrap().status == 503;
    let refused = (2..MOST_REQUESTS).find(|number| is_refused(*number)).expect("the disk is full");
    let ready = || service.admin().get("/readyz").status;
    assert_eq!(ready(), 503);
    for _ in 0..3 {
        assert!(is_refused(refused));
    }
    disk.empty();
    // Without a request: a load balancer sends none to a service that is not ready.
    until(PATIENCE, || service.said(), || ready() == 200);
    register_all(&service, refused + 1);
    expect_whole(&dev.folder, service.issuer(), refused + 1);
    service.stop();
}
