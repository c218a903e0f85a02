//! The command as a whole: its help, completions and manual pages.

use std::fs;
use std::process::Command;

use crate::support::Place;

#[test]
fn help_has_the_four_verbs_first() {
    let help = Place::new().pioscope(["--help"]).succeeds().out;
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let (verbs, rest, options) = (at("\nThe four verbs:\n"), at("\nMore commands:\n"), at("\nOptions:\n"));
    for (name, range) in [
        ("record", verbs..rest),
        ("explain", verbs..rest),
        ("predict", verbs..rest),
        ("apply", verbs..rest),
        ("advise", rest..options),
        ("compare", rest..options),
        ("completions", rest..options),
        ("help", rest..options),
    ] {
        assert_eq!(help.matches(&format!("\n  {name} ")).count(), 1, "{name}: {help}");
        assert!(range.contains(&at(&format!("\n  {name} "))), "{name}: {help}");
    }
    assert!(help.contains("-q, --quiet") && help.contains("Examples:\n  pioscope record"), "{help}");
}

#[test]
fn bash_completes_words() {
    let place = Place::new();
    fs::write(place.join("pioscope.bash"), place.pioscope(["completions", "bash"]).succeeds().out).unwrap();
    let offered = |words: &[&str]| {
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let script = format!(
            "source ./pioscope.bash; COMP_WORDS=({}); COMP_CWORD={}; _pioscope pioscope '{last}' '{before}'; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        place.run(Command::new("bash").args(["-c", &script])).succeeds().out
    };
    assert_eq!(offered(&["pioscope", "rec"]), "record\n");
    assert!(offered(&["pioscope", "store", "l"]).lines().any(|word| word == "ls"));
    assert!(offered(&["pioscope", "explain", "--js"]).lines().any(|word| word == "--json"));
    for (shell, says) in [("zsh", "#compdef pioscope"), ("fish", "complete -c pioscope")] {
        let script = place.pioscope(["completions", shell]).succeeds().out;
        assert!(script.contains(says) && script.contains("record"), "{script}");
    }
    assert_eq!(place.pioscope(["completions", "dos"]).code, Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    place.pioscope(["manual", "man"]).succeeds();
    let pages = fs::read_dir(place.join("man")).unwrap().map(|page| page.unwrap().path());
    let pages: Vec<_> = pages.collect();
    for name in
        ["pioscope", "pioscope-record", "pioscope-compare", "pioscope-store-ls", "pioscope-machines-show"]
    {
        assert!(place.join(&format!("man/{name}.1")).is_file(), "{name}: {pages:?}");
    }
    let record = fs::read_to_string(place.join("man/pioscope-record.1")).unwrap();
    assert!(record.contains("\\-\\-budget") && record.contains("Examples:"), "{record}");
    assert!(record.contains(".SH SYNOPSIS\n\\fBpioscope record\\fR [OPTIONS] \\-\\- <COMMAND>"), "{record}");
    let ran =
        |command: &mut Command| command.output().inspect_err(|error| eprintln!("skipped: {error}")).ok();
    for page in &pages {
        if let Some(checked) = ran(Command::new("mandoc").args(["-T", "lint", "-W", "error"]).arg(page)) {
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
        }
        // A man that is there in name only, as in small containers, says nothing.
        let mut man = Command::new("man");
        man.args(["--warnings", "-l"]).arg(page).envs([("MAN_DISABLE_SECCOMP", "1"), ("LC_ALL", "C.UTF-8")]);
        if let Some(shown) = ran(&mut man).filter(|shown| shown.status.success()) {
            assert_eq!(String::from_utf8_lossy(&shown.stderr), "", "{}", page.display());
        }
    }
}
