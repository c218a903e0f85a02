use std::thread;

use super::*;
use crate::transport::connection::Listener;
use crate::transport::ucx::{UcxListener, library, socket_address};

/// Says so, and that the test is skipped, where there is no UCX.
fn is_there() -> bool {
    match available() {
        Ok(()) => true,
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

fn connections() -> (UcxConnection, Box<dyn Connection>) {
    let mut listener = UcxListener::bind("127.0.0.1:0").unwrap();
    let address = listener.address().to_owned();
    // Connecting is done when the other side has accepted and looks.
    let near = thread::spawn(move || UcxConnection::connect(&address, Duration::from_secs(10)).unwrap());
    let mut far = listener.accept().unwrap();
    let patience = Some(Duration::from_millis(20));
    far.set_timeouts(patience, patience).unwrap();
    while !near.is_finished() {
        assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), ErrorKind::TimedOut);
    }
    (near.join().unwrap(), far)
}

fn pair() -> (UcxConnection, Box<dyn Connection>) {
    let (mut near, mut far) = connections();
    let sides: [&mut dyn Connection; 2] = [&mut near, &mut *far];
    for side in sides {
        side.set_limits(&Limits::DEFAULT);
        let patience = Some(Duration::from_secs(10));
        side.set_timeouts(patience, patience).unwrap();
    }
    (near, far)
}

#[test]
fn socket_addresses_go_there_and_back() {
    for text in ["127.0.0.1:4000", "[::1]:65535", "[fe80::1%7]:1"] {
        let address: std::net::SocketAddr = text.parse().unwrap();
        assert_eq!(socket_address::decode(&socket_address::encode(&address)), Some(address));
    }
    assert_eq!(socket_address::decode(&library::SocketAddress([0; 128])), None);
}

/// What the headers say of structures and constants, where there are headers and a compiler of C. (A structure may be longer
/// than ours: newer fields are behind the others.)
#[test]
fn our_declarations_are_those_of_the_headers() {
    if !std::path::Path::new("/usr/include/ucp/api/ucp.h").exists() {
        eprintln!("skipped: no headers of UCX");
        return;
    }
    macro_rules! declarations {
        ($program:ident, $ours:ident: $($type:ident = $c:literal { $($field:ident = $name:literal),* })*) => {
            $(
                $(
                    $program += concat!("printf(\"%zu\\n\", offsetof(", $c, ", ", $name, "));");
                    $ours.push(std::mem::offset_of!(library::$type, $field) as u64);
                )*
            )*
        };
    }
    let mut program =
        String::from("#include <stddef.h>\n#include <stdio.h>\n#include <ucp/api/ucp.h>\nint main(void) {");
    let mut ours: Vec<u64> = Vec::new();
    declarations! { program, ours:
        Params = "ucp_params_t" {
            field_mask = "field_mask", features = "features", mt_workers_shared = "mt_workers_shared", name = "name"
        }
        WorkerParams = "ucp_worker_params_t" {
            field_mask = "field_mask", thread_mode = "thread_mode", client_id = "client_id"
        }
        WorkerAttr = "ucp_worker_attr_t" { field_mask = "field_mask", max_am_header = "max_am_header" }
        SockAddr = "ucs_sock_addr_t" { addr = "addr", addrlen = "addrlen" }
        EndpointParams = "ucp_ep_params_t" {
            err_mode = "err_mode", err_handler = "err_handler.cb", err_handler_arg = "err_handler.arg",
            flags = "flags", sockaddr = "sockaddr", conn_request = "conn_request"
        }
        ListenerParams = "ucp_listener_params_t" {
            sockaddr = "sockaddr", conn_handler = "conn_handler.cb", conn_handler_arg = "conn_handler.arg"
        }
        ListenerAttr = "ucp_listener_attr_t" { sockaddr = "sockaddr" }
        HandlerParam = "ucp_am_handler_param_t" {
            field_mask = "field_mask", id = "id", flags = "flags", cb = "cb", arg = "arg"
        }
        MessageParam = "ucp_am_recv_param_t" { recv_attr = "recv_attr", reply_ep = "reply_ep" }
        RequestParam = "ucp_request_param_t" {
            op_attr_mask = "op_attr_mask", flags = "flags", datatype = "datatype", memory_type = "memory_type",
            memh = "memh"
        }
    }
    let status = |status: library::Status| i64::from(status) as u64;
    for (name, value) in [
        ("sizeof(ucs_status_t)", size_of::<library::Status>() as u64),
        ("sizeof(ucp_dt_iov_t)", size_of::<IoSlice>() as u64),
        ("UCS_OK", status(library::OK)),
        ("UCS_INPROGRESS", status(library::IN_PROGRESS)),
        ("UCS_ERR_NO_MEMORY", status(library::NO_MEMORY)),
        ("UCS_ERR_UNREACHABLE", status(library::UNREACHABLE)),
        ("UCS_ERR_BUSY", status(library::BUSY)),
        ("UCS_ERR_REJECTED", status(library::REJECTED)),
        ("UCS_ERR_CONNECTION_RESET", status(library::CONNECTION_RESET)),
        ("UCS_ERR_ENDPOINT_TIMEOUT", status(library::ENDPOINT_TIMEOUT)),
        ("UCP_PARAM_FIELD_FEATURES", library::params::FEATURES),
        ("UCP_PARAM_FIELD_MT_WORKERS_SHARED", library::params::MT_WORKERS_SHARED),
        ("UCP_FEATURE_WAKEUP", library::params::FEATURE_WAKEUP),
        ("UCP_FEATURE_AM", library::params::FEATURE_AM),
        ("UCP_WORKER_PARAM_FIELD_THREAD_MODE", library::worker::THREAD_MODE),
        ("UCS_THREAD_MODE_SERIALIZED", library::worker::THREAD_MODE_SERIALIZED.into()),
        ("UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER", library::worker::ATTR_MAX_AM_HEADER),
        ("UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE", library::endpoint::ERR_HANDLING_MODE),
        ("UCP_EP_PARAM_FIELD_ERR_HANDLER", library::endpoint::ERR_HANDLER),
        ("UCP_EP_PARAM_FIELD_SOCK_ADDR", library::endpoint::SOCK_ADDR),
        ("UCP_EP_PARAM_FIELD_FLAGS", library::endpoint::FLAGS),
        ("UCP_EP_PARAM_FIELD_CONN_REQUEST", library::endpoint::CONN_REQUEST),
        ("UCP_ERR_HANDLING_MODE_PEER", library::endpoint::ERR_HANDLING_MODE_PEER.into()),
        ("UCP_EP_PARAMS_FLAGS_CLIENT_SERVER", library::endpoint::FLAG_CLIENT_SERVER.into()),
        ("UCP_EP_CLOSE_FLAG_FORCE", library::endpoint::CLOSE_FLAG_FORCE.into()),
        ("UCP_LISTENER_PARAM_FIELD_SOCK_ADDR", library::listener::SOCK_ADDR),
        ("UCP_LISTENER_PARAM_FIELD_CONN_HANDLER", library::listener::CONN_HANDLER),
        ("UCP_LISTENER_ATTR_FIELD_SOCKADDR", library::listener::ATTR_SOCKADDR),
        ("UCP_AM_HANDLER_PARAM_FIELD_ID", library::am::HANDLER_ID),
        ("UCP_AM_HANDLER_PARAM_FIELD_CB", library::am::HANDLER_CB),
        ("UCP_AM_HANDLER_PARAM_FIELD_ARG", library::am::HANDLER_ARG),
        ("UCP_AM_RECV_ATTR_FLAG_RNDV", library::am::RECV_RENDEZVOUS),
        ("UCP_AM_SEND_FLAG_EAGER", library::am::SEND_EAGER.into()),
        ("UCP_AM_SEND_FLAG_RNDV", library::am::SEND_RENDEZVOUS.into()),
        ("UCP_OP_ATTR_FIELD_DATATYPE", library::operation::DATATYPE.into()),
        ("UCP_OP_ATTR_FIELD_FLAGS", library::operation::FLAGS.into()),
        ("ucp_dt_make_contig(1)", library::operation::BYTES),
        ("ucp_dt_make_iov()", library::operation::IOV),
    ] {
        program += &format!("printf(\"%llu\\n\", (unsigned long long)(long long)({name}));");
        ours.push(value);
    }
    program += "return 0; }";
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("declarations.c"), folder.path().join("declarations"));
    std::fs::write(&source, program).unwrap();
    let Ok(compiled) = std::process::Command::new("cc").arg("-o").arg(&binary).arg(&source).status() else {
        eprintln!("skipped: no compiler of C");
        return;
    };
    assert!(compiled.success());
    let said = std::process::Command::new(&binary).output().unwrap().stdout;
    let theirs: Vec<u64> =
        String::from_utf8(said).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs, ours);
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251 + seed) as u8).collect()
}

#[test]
fn messages_arrive_whole_and_in_order_however_they_are_sent() {
    const LENGTHS: [usize; 14] =
        [10, 0, 2047, 8191, 8192, 100_000, 3 << 20, 4 << 20, 5000, 4 << 20, 1, 0, 4 << 20, 1 << 20];
    const HEADS: [usize; 5] = [1, 100, 2024, 2025, 200_000];
    if !is_there() {
        return;
    }
    let (mut near, mut far) = pair();
    let sender = thread::spawn(move || {
        for (number, len) in LENGTHS.into_iter().enumerate() {
            let (head, data) = (bytes(HEADS[number % 5], number), bytes(len, number));
            if let (2, Some(room)) = (number % 3, near.lend(len + 1)) {
                room[..len].copy_from_slice(&data);
                near.send_lent(&head, len).unwrap();
                continue;
            }
            match number % 2 {
                0 => {
                    let pieces: Vec<IoSlice> = data.chunks(len / 100 + 1).map(IoSlice::new).collect();
                    near.send(&head, &pieces)
                }
                _ => near.send_filled(&head, len, &mut |out| {
                    out.copy_from_slice(&data);
                    Ok(())
                }),
            }
            .unwrap();
        }
        near.receive(&mut Vec::new()).unwrap();
    });
    let mut head = Vec::new();
    for (number, len) in LENGTHS.into_iter().enumerate() {
        assert_eq!(far.receive(&mut head).unwrap(), len);
        assert!(head == bytes(HEADS[number % 5], number));
        match number % 3 {
            0 => assert!(far.receive_data().unwrap() == bytes(len, number), "{number}"),
            1 => {
                let mut taken = vec![0; len];
                far.receive_into(&mut taken).unwrap();
                assert!(taken == bytes(len, number), "{number}");
            }
            // Skipped.
            _ => {}
        }
    }
    far.send(b"thanks", &[]).unwrap();
    sender.join().unwrap();
    assert_eq!(far.receive(&mut head).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn damage_and_excess_are_noticed() {
    if !is_there() {
        return;
    }
    let prefix = |head_len: usize, data_len: u32| {
        Prefix::new(&vec![0; head_len], data_len, crc32fast::hash(&[0; 100])).encode().to_vec()
    };
    let good = [&prefix(4, 100)[..], &[0; 4]].concat();
    // What the header says, and how many bytes of data come with it.
    for (header, len, whole) in [
        (good.clone(), 100, true),
        (good.clone(), 99, false),
        (good[..19].to_vec(), 100, false),
        (good[..3].to_vec(), 0, false),
        (prefix(4, 5 << 20), 5 << 20, false),
        (prefix(2 << 20, 0), 2 << 20, false),
        ([&prefix(4, 100)[..], &[1; 4]].concat(), 100, false),
        ([&prefix(4, 10_000)[..], &[0; 4]].concat(), 10_000, false),
    ] {
        let (mut near, mut far) = pair();
        let sender = thread::spawn(move || {
            let header = near.next_header(&[&header]);
            let data = vec![0; len];
            // It may be refused before it was taken.
            let deadline = after(Some(Duration::from_secs(10)));
            let _ = near.worker.send(&header, &[IoSlice::new(&data)], len >= RENDEZVOUS_FROM_BYTES, deadline);
            let _ = near.receive(&mut Vec::new());
        });
        let mut taken = vec![0; 100];
        let received = far.receive(&mut Vec::new()).and_then(|len| {
            taken.resize(len, 0);
            far.receive_into(&mut taken)
        });
        match received {
            Ok(()) => assert!(whole && taken == [0; 100]),
            Err(error) => assert!(!whole && error.kind() == ErrorKind::InvalidData, "{error}"),
        }
        drop(far);
        sender.join().unwrap();
    }
}

#[test]
fn strangers_may_send_greetings_only() {
    if !is_there() {
        return;
    }
    let (mut near, mut far) = connections();
    far.set_timeouts(Some(Duration::from_secs(10)), None).unwrap();
    let sender = thread::spawn(move || {
        near.send(b"hello", &[IoSlice::new(&[0; 100])]).unwrap();
        let _ = near.receive(&mut Vec::new());
    });
    assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), ErrorKind::InvalidData);
    drop(far);
    sender.join().unwrap();
}

#[test]
fn silence_ends_with_the_timeout_and_a_wait_with_the_breaker() {
    if !is_there() {
        return;
    }
    let (_near, mut far) = pair();
    far.set_timeouts(Some(Duration::from_millis(10)), None).unwrap();
    assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), ErrorKind::TimedOut);
    far.set_timeouts(None, None).unwrap();
    let breaker = far.breaker().unwrap();
    let waiting = thread::spawn(move || far.receive(&mut Vec::new()).unwrap_err().kind());
    thread::sleep(Duration::from_millis(20));
    breaker();
    assert_eq!(waiting.join().unwrap(), ErrorKind::ConnectionAborted);
}

#[test]
fn a_receiver_that_takes_nothing_is_given_up() {
    if !is_there() {
        return;
    }
    let (mut near, far) = pair();
    near.set_timeouts(None, Some(Duration::from_millis(50))).unwrap();
    let data = bytes(1 << 20, 3);
    assert_eq!(near.send(b"x", &[IoSlice::new(&data)]).unwrap_err().kind(), ErrorKind::ConnectionAborted);
    assert!(near.send(b"x", &[]).is_err() && near.receive(&mut Vec::new()).is_err());
    drop(far);
}

#[test]
fn nobody_there_is_an_error() {
    if !is_there() {
        return;
    }
    // A port that nobody listens at.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:1,ucx={port}");
    let start = Instant::now();
    assert!(UcxConnection::connect(&address, Duration::from_secs(10)).is_err());
    assert!(start.elapsed() < Duration::from_secs(5));
    let error = UcxConnection::connect("127.0.0.1:1", Duration::from_secs(10)).unwrap_err();
    assert!(error.to_string().contains("does not listen through UCX"));
}

#[test]
fn a_port_is_found_again() {
    if !is_there() {
        return;
    }
    let (near, far) = pair();
    drop((near, far));
    let first = UcxListener::bind("127.0.0.1:0").unwrap();
    let address = first.address().to_owned();
    drop(first);
    assert_eq!(UcxListener::bind(&address).unwrap().address(), address);
}
