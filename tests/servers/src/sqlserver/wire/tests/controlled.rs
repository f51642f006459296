//! Breakpoints over whole connections, against the scripted engine.

use tokio::sync::mpsc::UnboundedReceiver;

use super::super::super::control::{Breakpoint, Control, Hit, Then, When};
use super::hex;
use super::scripted::{Event, ScriptedServer};

const BULK: &str = "81 0100 00000000 0900 26 08 01 6100 D1 08 0500000000000000 D1 08 0600000000000000 \
                    FD 0000 0000 0000000000000000";
const DONE_COUNT: u16 = 0x10;

fn next(hits: &mut UnboundedReceiver<Hit>) -> Hit {
    hits.blocking_recv().expect("a hit")
}

#[test]
fn a_session_is_held_before_its_statement_and_others_go_on() {
    let control = Control::new();
    let mut hits = control.listen();
    let server = ScriptedServer::start_controlled(&control);
    let (mut held, mut other) = (server.client(), server.client());
    let id = control.set(Breakpoint::hold("rows 3", When::Before).of("ap").whole().nth(2));
    held.batch("rows 3");
    held.expect_done(DONE_COUNT);
    held.batch("rows 3");
    assert_eq!(next(&mut hits), Hit { hit: id, session: 51, program: "app".into() });
    other.batch("rows 3");
    other.expect_done(DONE_COUNT);
    assert!(control.release(id, Then::GoOn) && !control.release(id + 1, Then::GoOn));
    held.expect_done(DONE_COUNT);
}

#[test]
fn a_cut_before_a_statement_leaves_it_undone_and_a_cut_after_it_unanswered() {
    let control = Control::new();
    let mut hits = control.listen();
    let server = ScriptedServer::start_controlled(&control);
    for (when, produced) in [(When::Before, 0), (When::After, 2)] {
        let mut client = server.client();
        let id = control.set(Breakpoint::cut("rows 2", when));
        client.batch("rows 2");
        assert_eq!(next(&mut hits).hit, id);
        assert_eq!(client.expect_nothing_but_the_end(), 0, "{when:?}");
        assert_eq!(server.event(), Event::Dropped);
        assert_eq!(server.script.rows_produced.load(std::sync::atomic::Ordering::SeqCst), produced);
    }
    let mut client = server.client();
    client.batch("rows 1");
    client.expect_done(DONE_COUNT);
}

#[test]
fn a_bulk_load_is_held_after_a_row_and_cut_before_its_answer() {
    let control = Control::new();
    let mut hits = control.listen();
    let server = ScriptedServer::start_controlled(&control);
    let mut client = server.client();
    client.batch("insert bulk x");
    client.expect_done(0);
    let row = control.set(Breakpoint::hold("bulk x", When::Rows(1)).on_bulk());
    let end = control.set(Breakpoint::cut("bulk x", When::After).on_bulk());
    client.packet(0x07, 1, &hex(BULK));
    assert!(matches!(server.event(), Event::Row(_)));
    assert_eq!(next(&mut hits).hit, row);
    assert!(control.release(row, Then::GoOn));
    assert!(matches!(server.event(), Event::Row(_)));
    assert_eq!(next(&mut hits).hit, end);
    assert_eq!(client.expect_nothing_but_the_end(), 0);
    assert_eq!(server.event(), Event::BulkFinished);
}

/// A held session must not hold the server: it stops and the session with it.
#[test]
fn a_server_that_stops_releases_what_it_holds() {
    let control = Control::new();
    let mut hits = control.listen();
    let server = ScriptedServer::start_controlled(&control);
    let mut client = server.client();
    control.set(Breakpoint::hold("", When::Before));
    client.batch("rows 1");
    next(&mut hits);
    control.close();
    server.stop();
}
