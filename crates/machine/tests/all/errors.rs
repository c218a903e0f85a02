//! What is wrong with a description is named: file, line, and what is allowed.

// A test that cannot set up its scene fails there.

use pio_machine::Machine;

/// A built-in description with one line replaced.
fn message(line: &str, instead: &str) -> String {
    let text = include_str!("../../../../machines/sp-argonne.toml");
    assert!(text.contains(line), "the description has no '{line}'");
    Machine::parse("my.toml", &text.replace(line, instead)).unwrap_err().to_string()
}

fn line_of(line: &str) -> usize {
    let text = include_str!("../../../../machines/sp-argonne.toml");
    1 + text.lines().position(|found| found.starts_with(line)).unwrap()
}

#[test]
fn an_absurd_value_is_refused_with_the_range() {
    let line = line_of("count = 120");
    let expected = format!("my.toml:{line}: nodes.count = 0: expected a whole number from 1 to 1048576");
    assert_eq!(message("count = 120", "count = 0"), expected);
    let found = message("strip = \"32 KiB\"", "strip = \"32 TiB\"");
    assert!(
        found.ends_with("expected a size from \"512 B\" to \"1 GiB\" with its unit (B, KiB, MB, ...)"),
        "{found}"
    );
}

#[test]
fn turns_of_a_processor_are_no_shorter_than_a_microsecond() {
    let found = message("count = 120", "quantum = \"1 ps\"\ncount = 120");
    assert!(found.contains("nodes.quantum = \"1 ps\": expected a time from \"1 us\""), "{found}");
}

#[test]
fn what_pieces_cost_is_given_whole_and_within_reason_or_not_at_all() {
    let close = "close = \"2.459 ms\"              # fitted\n";
    let with = |pieces: &str| {
        let text = include_str!("../../../../machines/sp-argonne.toml");
        assert!(text.contains(close));
        Machine::parse("my.toml", &text.replace(close, &format!("{close}pieces = {pieces}\n")))
    };
    let server = "server = { bandwidth = \"1 GB/s\", piece = \"2 ns\" }";
    let machine = with(&format!("{{ read = \"1 us\", write = \"0 s\", {server} }}")).unwrap();
    assert_eq!(Machine::parse("my.toml", &machine.to_toml("")).unwrap(), machine);
    let absurd = with(&format!("{{ read = \"2 s\", write = \"0 s\", {server} }}")).unwrap_err().to_string();
    assert!(
        absurd.contains("storage.pieces.read = \"2 s\": expected a time from \"0 s\" to \"1 s\""),
        "{absurd}"
    );
    let half = with("{ read = \"1 us\", write = \"1 us\" }").unwrap_err().to_string();
    assert!(half.contains("'storage.pieces.server' is missing"), "{half}");
    let unknown = with(&format!("{{ read = \"1 us\", wriet = \"0 s\", {server} }}")).unwrap_err().to_string();
    assert!(unknown.contains("unknown key 'storage.pieces.wriet'"), "{unknown}");
}

#[test]
fn servers_that_share_cores_have_no_memory_of_their_own() {
    let shared = "placement = \"distributed\", dedicated = false, shares-cores = true }";
    let found = message("placement = \"clustered\", dedicated = true }", shared);
    let expected = "expected no such key where storage.io.shares-cores is true";
    assert!(found.contains("storage.memory") && found.contains(expected), "{found}");
    let text = include_str!("../../../../machines/sp-argonne.toml")
        .replace("placement = \"clustered\", dedicated = true }", shared)
        .replace("memory = \"1 MiB\"", "");
    let found = Machine::parse("my.toml", &text).unwrap_err().to_string();
    assert!(found.contains("storage.arm") && found.contains(expected), "{found}");
}

#[test]
fn a_number_without_unit_is_refused() {
    let found = message("strip = \"32 KiB\"", "strip = 32768");
    assert!(
        found.starts_with(&format!("my.toml:{}: storage.strip = 32768: expected", line_of("strip"))),
        "{found}"
    );
    let found = message("radix = 4", "radix = \"4 MB\"");
    assert!(found.contains("network.radix = \"4 MB\": expected a whole number from 2 to 1024"), "{found}");
}

#[test]
fn an_unknown_key_is_answered_with_those_known() {
    let found = message("radix = 4", "radix = 4\nports = 8");
    let line = line_of("radix") + 1;
    let expected = format!(
        "my.toml:{line}: unknown key 'network.ports' (known here: kind, link, radix, rails, switching)"
    );
    assert_eq!(found, expected);
}

#[test]
fn a_missing_key_is_named_with_what_should_stand_there() {
    let found = message("strip = \"32 KiB\"\n", "");
    let line = line_of("[storage]");
    assert!(
        found.starts_with(&format!("my.toml:{line}: 'storage.strip' is missing (expected a size from")),
        "{found}"
    );
}

#[test]
fn a_misspelt_key_is_named_before_the_one_that_is_missing() {
    let line = line_of("strip");
    let known = "kind, exclusive-writes, io, strip, request, read, write, cache, open, close, pieces, takes-views, \
                 memory, arm, separate-closes, begin, connect, summing, sync, bandwidth, streams, callback, lock-strip, exclusive, handover, components, stripe-count, \
                 servers, client, locks, metadata, create, resize, lock, stat, unlink";
    assert_eq!(
        message("strip = \"32 KiB\"", "stripe = \"32 KiB\""),
        format!("my.toml:{line}: unknown key 'storage.stripe' (known here: {known})"),
    );
    // Also that of a table; and also if what is missing is elsewhere, and read earlier.
    let found = message("[calls]", "[call]");
    assert!(
        found.starts_with(&format!("my.toml:{}: unknown key 'call' (known", line_of("[calls]"))),
        "{found}"
    );
    let text = include_str!("../../../../machines/sp-argonne.toml");
    let text = text.replace("switch = \"0 s\"", "").replace("read = { call", "read = { cal");
    let found = Machine::parse("my.toml", &text).unwrap_err().to_string();
    assert!(found.contains(": unknown key 'calls.read.cal' (known here: call, bandwidth, sizes)"), "{found}");
    // A key that other kinds have is no misspelling.
    let found = message("radix = 4", "arity = 4");
    assert!(found.contains(": 'network.radix' is missing (expected a whole number"), "{found}");
}

/// What is missing is reported as such, table by table: so no key of a description is taken for a misspelt one.
#[test]
fn every_key_is_known() {
    let local = "[storage]\nkind = \"local\"\nexclusive-writes = true\n\n[calls]";
    let sp = Machine::built_in("sp-argonne").unwrap().to_toml("");
    let paragon = Machine::built_in("paragon-caltech").unwrap().to_toml("");
    let (before, after) = sp.split_at(sp.find("[storage]").unwrap());
    let on_local = format!("{before}{local}{}", after.split_once("[calls]").unwrap().1);
    Machine::parse("local.toml", &on_local).unwrap();
    for text in [sp, paragon, on_local] {
        let name = text.lines().find(|line| line.starts_with("name = ")).unwrap();
        let found = Machine::parse("my.toml", &text.replace(name, "")).unwrap_err().to_string();
        assert!(found.contains("'name' is missing"), "{found}");
    }
}

#[test]
fn servers_on_compute_nodes_need_as_many() {
    let found = message(
        "count = 8, placement = \"clustered\", dedicated = true",
        "count = 121, placement = \"clustered\", dedicated = false",
    );
    assert!(
        found.ends_with(
            "storage.io.count = 121: expected at most nodes.count = 120, as they are not dedicated"
        ),
        "{found}"
    );
}

#[test]
fn what_is_no_toml_names_its_line() {
    let found = Machine::parse("my.toml", "name = \"x\"\n[nodes\n").unwrap_err().to_string();
    assert!(found.starts_with("my.toml:2: "), "{found}");
}

#[test]
fn a_missing_file_is_named() {
    let found = Machine::find("no/such.toml").unwrap_err().to_string();
    assert!(found.starts_with("no/such.toml: "), "{found}");
}

/// The description with another network, which begins in the line given as well.
fn with_network(network: &str) -> (String, usize) {
    let text = include_str!("../../../../machines/sp-argonne.toml");
    let (before, rest) = text.split_once("[network]").unwrap();
    let (_, after) = rest.split_once("[storage]").unwrap();
    let link = "link = { bandwidth = \"35 MB/s\", latency = \"500 ns\" }";
    (format!("{before}[network]\n{network}\n{link}\n[storage]{after}"), line_of("[network]"))
}

#[test]
fn every_kind_of_network_is_read_and_written() {
    for network in [
        "kind = \"flat\"\nswitching = \"flow\"\nflow = { routes = \"static\" }",
        "kind = \"omega\"\nradix = 4\nswitching = \"flow\"\nflow = { routes = \"spread\" }",
        "kind = \"flat\"\nswitching = \"flow\"\nflow = { routes = \"static\", congestion = \"spreads\" }",
        "kind = \"fat-tree\"\narity = 4\nlevels = 4",
        "kind = \"fat-tree\"\narity = 4\nlevels = 10",
        "kind = \"fat-tree\"\narity = 2\nlevels = 17",
        "kind = \"fat-tree\"\ndownlinks = [128, 1]",
        "kind = \"fat-tree\"\narity = 4\nlevels = 4\nuplinks = [4, 2, 1]",
        "kind = \"fat-tree\"\ndownlinks = [16, 9]\nuplinks = [8]",
        "kind = \"fat-tree\"\ndownlinks = [130]",
        "kind = \"dragonfly\"\nnodes-per-switch = 4\nswitches-per-group = 8\nlinks-per-switch = 4\ngroups = 33\nrouting = \"adaptive\"",
        "kind = \"fly\"\narity = 2\nstages = 7",
        "kind = \"mesh\"\ndimensions = [16, 8]",
        "kind = \"torus\"\ndimensions = [4, 4, 8]",
        "kind = \"dragonfly\"\nnodes-per-switch = 4\nswitches-per-group = 8\nlinks-per-switch = 4\ngroups = 33\nrouting = \"valiant\"",
        "kind = \"graph\"\nswitches = [{ name = \"a\", nodes = \"0-99, 120-127\", links = [\"b\", \"b\"] }, { name = \"b\", nodes = \"100-119\" }]",
    ] {
        let (text, _) = with_network(network);
        let machine = Machine::parse("my.toml", &text).unwrap_or_else(|error| panic!("{network}: {error}"));
        assert_eq!(Machine::parse("again.toml", &machine.to_toml("")).unwrap(), machine, "{network}");
    }
}

#[test]
fn a_network_that_cannot_be_is_refused_with_the_reason() {
    for (network, line, expected) in [
        ("kind = \"ring\"", 1, "expected \"flat\" or \"omega\" or \"fat-tree\" or \"fly\" or"),
        ("kind = \"fat-tree\"\narity = 4\nlevels = 3", 3, "expected a network with room for 128 nodes"),
        (
            "kind = \"fat-tree\"\narity = 32\nlevels = 5",
            3,
            "expected at most 1048576 nodes: arity 32 to a smaller power",
        ),
        (
            "kind = \"flat\"\nswitching = \"flow\"\nflow = { routes = \"spread\", congestion = \"spreads\" }",
            3,
            "expected \"controlled\", or routes = \"static\"",
        ),
        ("kind = \"fat-tree\"\ndownlinks = [16, 7]", 2, "this one has room for 112"),
        ("kind = \"fat-tree\"\ndownlinks = [4, 4, 4]", 2, "this one has room for 64"),
        ("kind = \"fat-tree\"\ndownlinks = [1]", 2, "this one has room for 1"),
        (
            "kind = \"fat-tree\"\ndownlinks = [4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]",
            2,
            "expected at most 1048576 switches in all",
        ),
        (
            "kind = \"fat-tree\"\ndownlinks = [16, 9]\nuplinks = [8, 8]",
            3,
            "expected a list of 1 to 1 whole numbers",
        ),
        ("kind = \"fat-tree\"\ndownlinks = [1024, 1024, 2]", 2, "expected a product of at most 1048576"),
        (
            "kind = \"fat-tree\"\ndownlinks = [2, 2, 1024]\nuplinks = [1024, 1024]",
            3,
            "expected at most 1048576 switches in all",
        ),
        ("kind = \"fly\"\narity = 1\nstages = 7", 2, "arity = 1: expected a whole number from 2 to 1024"),
        (
            "kind = \"omega\"\nradix = 8\nswitching = \"flow\"\nflow = { routes = \"static\" }",
            2,
            "expected 4:",
        ),
        ("kind = \"mesh\"\ndimensions = [16, 7]", 2, "this one has room for 112"),
        ("kind = \"torus\"\ndimensions = []", 2, "expected a list of 1 to 6 whole numbers"),
        (
            "kind = \"torus\"\ndimensions = [1048576, 1048576, 1048576, 1048576]",
            2,
            "a product of at most 1048576",
        ),
        (
            "kind = \"dragonfly\"\nnodes-per-switch = 4\nswitches-per-group = 4\nlinks-per-switch = 2\ngroups = 10\nrouting = \"minimal\"",
            5,
            "expected 2 to 9: every group needs a link",
        ),
        (
            "kind = \"graph\"\nswitches = [{ name = \"a\", nodes = \"9-1\" }]",
            2,
            "switches[0].nodes = \"9-1\": expected node numbers",
        ),
        (
            "kind = \"graph\"\nswitches = [{ name = \"a\", node = \"1\" }]",
            2,
            "unknown key 'network.switches[0].node'",
        ),
        (
            "kind = \"flat\"\nswitching = \"smoke\"",
            2,
            "switching = \"smoke\": expected \"links\" or \"flow\"",
        ),
    ] {
        let (text, first) = with_network(network);
        let found = Machine::parse("my.toml", &text).unwrap_err().to_string();
        assert!(found.starts_with(&format!("my.toml:{}: ", first + line)), "{found}");
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused_where_it_ends_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    std::fs::write(&path, b"name = \"here\"\nnodes = \xff").unwrap();
    let error = Machine::find(path.to_str().unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{}:2: expected a description in TOML, found bytes that are no text", path.display())
    );
}
