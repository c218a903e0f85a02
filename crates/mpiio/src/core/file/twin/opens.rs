//! What opening a file comes to.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use pio_plan::Hints;
use pio_protocol::owner_of;
use pio_store::client::Options;

use super::scene::Scene;
use super::world::{MPI, World, release};
use crate::core::file::open::Opened;
use crate::core::mpi::status::Status;
use crate::core::run::channel_pool::ChannelPool;
use crate::core::storage::mode::Mode;
use crate::places::Places;

/// It was opened as if it were empty, and what was appended went over what it held.
#[test]
fn a_file_whose_end_nobody_knows_is_not_opened_to_append() {
    let mut scene = Scene::of_servers_with(Options { timeout: Duration::from_secs(1), ..Options::default() });
    // Of a server that knows the name and has the record.
    let name = (0..).map(|number| format!("append{number}")).find(|name| owner_of(name, 3) == 0).unwrap();
    let open = |mode| {
        let world = Arc::new(World::new(&[0]));
        let communicator = world.communicator(0);
        // SAFETY: the communicator is ours, as are the table's functions.
        let pool = unsafe { ChannelPool::new(&MPI, communicator, true) }.unwrap();
        let path = CString::new(format!("pioscope:{name}")).unwrap();
        let opened = Opened::new(&pool, &path, mode, None, &Hints::default(), &Places::default());
        let end = opened.map(|opened| {
            opened.storage.write(0, &[1; 100]).unwrap();
            pool.put_back(opened.channel);
            opened.end
        });
        pool.forget(true);
        // SAFETY: nobody has it any more.
        unsafe { release(communicator, 1) };
        end
    };
    // Read, write, create, append.
    let appends = Mode(4 + 8 + 256);
    assert_eq!(open(appends), Ok(0));
    assert_eq!(open(appends), Ok(100));
    scene.stop(2);
    assert_eq!(open(appends), Err(Status::Unreachable));
}
