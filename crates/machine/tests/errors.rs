//! What is wrong with a description is named: file, line, and what is allowed.

// A test that cannot set up its scene fails there.
#![allow(clippy::unwrap_used)]

use pio_machine::Machine;

/// A built-in description with one line replaced.
fn message(line: &str, instead: &str) -> String {
    let text = include_str!("../../../machines/sp-argonne.toml");
    assert!(text.contains(line), "the description has no '{line}'");
    Machine::parse("my.toml", &text.replace(line, instead)).unwrap_err().to_string()
}

fn line_of(line: &str) -> usize {
    let text = include_str!("../../../machines/sp-argonne.toml");
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
    let expected =
        format!("my.toml:{line}: unknown key 'network.ports' (known here: kind, link, radix, switching)");
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
    let known = "kind, exclusive-writes, io, strip, read, write, open, close";
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
    let text = include_str!("../../../machines/sp-argonne.toml");
    let text = text.replace("switch = \"0 s\"", "").replace("read = { call", "read = { cal");
    let found = Machine::parse("my.toml", &text).unwrap_err().to_string();
    assert!(found.contains(": unknown key 'calls.read.cal' (known here: call, bandwidth)"), "{found}");
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
