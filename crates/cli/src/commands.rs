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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_help_are_commands_that_there_are() {
        let mut count = 0;
        check_examples(&command(), &mut count);
        assert!(count > 50, "{count}");
    }

    fn check_examples(of: &Command, count: &mut usize) {
        let help = of.get_after_help().map(ToString::to_string).unwrap_or_default();
        // Variables are the shell's: a number stands for the one that must be a number.
        let examples = help.split("\n\n").next().unwrap_or_default().replace("\\\n", "");
        let examples = examples.replace("$SLURM_PROCID", "0");
        for line in examples.lines() {
            for words in commands_in(line) {
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "help of {}: {line}\n{}", of.get_name(), parsed.unwrap_err());
                *count += 1;
            }
        }
        of.get_subcommands().for_each(|inner| check_examples(inner, count));
    }

    /// The words of each `pioscope …` in a line for a shell, without the remark in brackets behind it.
    fn commands_in(line: &str) -> Vec<Vec<String>> {
        let line = line.split(" (").next().unwrap_or_default();
        let begins = |at: usize| {
            !line[..at].ends_with(|before: char| before.is_alphanumeric() || "/-_".contains(before))
        };
        let found = line.match_indices("pioscope ").filter(|(at, _)| begins(*at));
        found.map(|(at, _)| words(&line[at..])).collect()
    }

    /// The words up to the end of the command: `;`, a redirection, or the bracket around it.
    fn words(text: &str) -> Vec<String> {
        let (mut words, mut word) = (Vec::new(), String::new());
        let (mut quote, mut brackets) = (None, 0);
        for sign in text.chars() {
            match (quote, sign) {
                (Some(open), _) if open == sign => quote = None,
                (None, '\'' | '"') => quote = Some(sign),
                (None, ';' | '>') => break,
                (None, ')') if brackets == 0 => break,
                (None, ' ') => words.push(std::mem::take(&mut word)),
                _ => {
                    brackets += i32::from(sign == '(') - i32::from(sign == ')');
                    word.push(sign);
                }
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }
}
