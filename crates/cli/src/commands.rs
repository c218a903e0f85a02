//! The command as a whole: its help in groups, and what is made from its definitions: completions for shells, manual pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::output::note;

/// What Pioscope is about, before the rest.
const VERBS: [&str; 4] = ["record", "explain", "predict", "apply"];

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(pioscope completions bash)
  pioscope completions zsh > ~/.zfunc/_pioscope                (a folder of $fpath)
  pioscope completions fish > ~/.config/fish/completions/pioscope.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope manual ~/.local/share/man/man1; man pioscope-record")]
pub(crate) struct ManualArguments {
    /// Where to put the pages: pioscope.1, and one for each command
    folder: PathBuf,
}

/// The command, its help in two groups.
pub(crate) fn command() -> Command {
    let command = with_negative_numbers(crate::Arguments::command());
    let header = *command.get_styles().get_header();
    let verbs = list(&command.clone().disable_help_subcommand(true), true);
    let rest = list(&command, false);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n\
         {header}The four verbs:{header:#}\n{verbs}\n\n\
         {header}More commands:{header:#}\n{rest}\n\n\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// A value such as -1 gets the message of its option, not one that there is no option -1.
fn with_negative_numbers(command: Command) -> Command {
    let is_value = |argument: &Arg| argument.get_action().takes_values() && !argument.is_positional();
    let change = |argument: Arg| match is_value(&argument) {
        true => argument.allow_negative_numbers(true),
        false => argument,
    };
    command.mut_args(change).mut_subcommands(with_negative_numbers)
}

/// The lines of help on the four verbs, or on all other commands, as clap writes them.
fn list(command: &Command, of_verbs: bool) -> String {
    let is_other = |command: &Command| VERBS.contains(&command.get_name()) != of_verbs;
    let mut part = command.clone().help_template("{subcommands}").mut_subcommands(|command| {
        let hidden = command.is_hide_set() || is_other(&command);
        command.hide(hidden)
    });
    part.render_help().ansi().to_string().trim_end().to_owned()
}

pub(crate) fn completions(arguments: CompletionsArguments) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "pioscope", &mut script);
    crate::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The synopsis of a page is the usage that the help gives: with the `--` before another command, and without all options.
fn with_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    command.override_usage(usage).mut_subcommands(with_usage)
}

pub(crate) fn manual(arguments: ManualArguments) -> Result<ExitCode> {
    let folder: &Path = &arguments.folder;
    let context = || format!("{}: cannot write the pages", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    let mut command = crate::Arguments::command();
    command.build();
    clap_mangen::generate_to(with_usage(command), folder).with_context(context)?;
    note!("wrote the pages to {}", folder.display());
    Ok(ExitCode::SUCCESS)
}
