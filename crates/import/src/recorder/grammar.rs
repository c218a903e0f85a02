//! Grammars: what a process called in which order, repetitions written once.
//!
//! ```text
//! i32 rules; each: i32 name (below 0; −1 is the whole) · i32 symbols · symbols: i32 value · i32 times
//! value: from 0 the number of a signature, below 0 the name of a rule
//! ```
//!
//! What is written out is never longer than the times there are for it: rules that stand for nothing are dropped, and a
//! rule that stands for another one alone is replaced by it, so that every step of writing out leads to calls.

use std::collections::BTreeMap;

use super::folder::Folder;
use super::metadata::{Metadata, word};
use super::signatures::Usable;
use super::{Broken, packed};

/// The rule that is the whole.
const WHOLE: i32 = -1;

/// What one process called, or several alike.
#[derive(Default)]
pub(super) struct Grammar {
    rules: Vec<Rule>,
    whole: Option<Symbol>,
    /// Where it stands, for what is wrong with it.
    pub(super) file: String,
    pub(super) offset: u64,
}

/// Symbols and how many times each.
type Rule = Vec<(Symbol, u32)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Call(u32),
    Rule(usize),
    /// The name of a rule that is not there, or that contains itself.
    Missing(i32),
    Endless(i32),
    /// What the end of the file cut off.
    Cut,
    /// Nothing at all.
    Nothing,
}

impl Grammar {
    pub(super) fn read(folder: &Folder, name: &str, metadata: &Metadata) -> Usable<Grammar> {
        let stored = match folder.read(name) {
            Ok(stored) => stored,
            Err(broken) => return (Grammar::default(), Some(broken)),
        };
        if metadata.version != (2, 3) && packed::is_packed(&stored) {
            let part = packed::unpack(name, &stored, 0);
            return Grammar::of_part(name, 0, &part);
        }
        Grammar::parse(&stored, name, 0)
    }

    fn of_part(name: &str, offset: u64, part: &packed::Part) -> Usable<Grammar> {
        let (grammar, broken) = Grammar::parse(&part.bytes, name, offset);
        let inside =
            broken.map(|it| Broken::new(name, offset, format!("unpacked at {}: {}", it.offset, it.expected)));
        (grammar, part.broken.clone().or(inside))
    }

    /// Takes the whole rules; `offset` is where they stand in the file.
    fn parse(bytes: &[u8], file: &str, offset: u64) -> Usable<Grammar> {
        let mut bodies = BTreeMap::new();
        let (mut broken, mut cut) = (None, None);
        let mut at = 4;
        let count = word(bytes, 0);
        if count.is_none() {
            broken = Some(Broken::new(file, 0, "the number of rules"));
        }
        for index in 0..count.unwrap_or(0) {
            let symbols = word(bytes, at + 4).and_then(|symbols| usize::try_from(symbols).ok());
            let begin = (at + 8).min(bytes.len());
            let whole = symbols.and_then(|symbols| begin.checked_add(symbols.checked_mul(8)?));
            let end = whole.unwrap_or(usize::MAX).min(bytes.len());
            let name = word(bytes, at).map(|name| name as i32);
            if let Some(name) = name {
                let body = bytes[begin..end].as_chunks::<8>().0.iter().map(|symbol| {
                    let half = |at| word(symbol, at).unwrap_or(0) as i32;
                    (half(0), u32::try_from(half(4)).unwrap_or(0))
                });
                bodies.insert(name, body.collect::<Vec<_>>());
            }
            if name.is_none() || whole != Some(end) {
                let expected = format!("all symbols of rule {} of {}", index + 1, count.unwrap_or(0));
                broken = Some(Broken::new(file, (begin + (end - begin) / 8 * 8) as u64, expected));
                cut = name;
                break;
            }
            at = end;
        }
        let mut grammar = Grammar::of(&bodies, cut);
        grammar.file = file.to_owned();
        grammar.offset = offset;
        (grammar, broken)
    }

    /// Puts rules after those they consist of, without recursion: there may be as many as a file has bytes for. Of the
    /// rule `cut`, the end is missing.
    fn of(bodies: &BTreeMap<i32, Vec<(i32, u32)>>, cut: Option<i32>) -> Grammar {
        let mut grammar = Grammar::default();
        let mut known: BTreeMap<i32, Symbol> = BTreeMap::new();
        // Rules whose symbols are being looked at: name, next symbol, what came of those before.
        let mut open: Vec<(i32, usize, Rule)> = vec![(WHOLE, 0, Vec::new())];
        known.insert(
            WHOLE,
            if bodies.contains_key(&WHOLE) { Symbol::Endless(WHOLE) } else { Symbol::Nothing },
        );
        while let Some((name, next, rule)) = open.last_mut() {
            let Some(&(value, times)) = bodies.get(name).and_then(|body| body.get(*next)) else {
                let (name, mut rule) = (*name, std::mem::take(rule));
                open.pop();
                if cut == Some(name) {
                    rule.push((Symbol::Cut, 1));
                }
                known.insert(name, grammar.add(rule));
                continue;
            };
            let symbol = match u32::try_from(value) {
                Ok(number) => Symbol::Call(number),
                Err(_) => match known.get(&value) {
                    Some(&symbol) => symbol,
                    None if bodies.contains_key(&value) => {
                        // Until it is done, meeting it again means that it contains itself.
                        known.insert(value, Symbol::Endless(value));
                        open.push((value, 0, Vec::new()));
                        continue;
                    }
                    None => Symbol::Missing(value),
                },
            };
            *next += 1;
            if times > 0 && symbol != Symbol::Nothing {
                rule.push((symbol, times));
            }
        }
        grammar.whole = known.get(&WHOLE).copied();
        grammar
    }

    fn add(&mut self, rule: Rule) -> Symbol {
        match rule[..] {
            [] => Symbol::Nothing,
            [(symbol, 1)] => symbol,
            _ => {
                self.rules.push(rule);
                Symbol::Rule(self.rules.len() - 1)
            }
        }
    }

    /// The numbers of the signatures, in the order in which they were called. An error is the last.
    pub(super) fn calls(&self) -> Calls<'_> {
        let whole = self.whole.filter(|symbol| *symbol != Symbol::Nothing);
        Calls { rules: &self.rules, now: whole.map(|symbol| (symbol, 1)), open: Vec::new() }
    }
}

/// A grammar, being written out.
pub(super) struct Calls<'a> {
    rules: &'a [Rule],
    /// What comes next, and how many times.
    now: Option<(Symbol, u32)>,
    /// What comes behind it: rule, index of its next symbol; and how many times the rule is to be gone through again.
    open: Vec<(usize, usize, u32)>,
}

impl Iterator for Calls<'_> {
    type Item = Result<u32, String>;

    fn next(&mut self) -> Option<Result<u32, String>> {
        loop {
            let Some((symbol, times)) = self.now.take() else {
                let (rule, next, again) = self.open.last_mut()?;
                match self.rules[*rule].get(*next) {
                    Some(&symbol) => {
                        *next += 1;
                        self.now = Some(symbol);
                    }
                    None if *again > 0 => {
                        *again -= 1;
                        *next = 0;
                    }
                    None => {
                        self.open.pop();
                    }
                }
                continue;
            };
            match symbol {
                Symbol::Call(number) => {
                    self.now = (times > 1).then(|| (symbol, times - 1));
                    return Some(Ok(number));
                }
                Symbol::Rule(rule) => self.open.push((rule, 0, times - 1)),
                Symbol::Nothing => {}
                // Where it was cut was told.
                Symbol::Cut => self.open.clear(),
                Symbol::Missing(name) => {
                    self.open.clear();
                    return Some(Err(format!("rule {name}, which others name")));
                }
                Symbol::Endless(name) => {
                    self.open.clear();
                    return Some(Err(format!("no rule that contains itself, as {name} does")));
                }
            }
        }
    }
}

/// Which of the different grammars each rank has: `ug.mt`.
pub(super) fn numbers(folder: &Folder, ranks: u32) -> Usable<Vec<u32>> {
    const NAME: &str = "ug.mt";
    let bytes = match folder.read(NAME) {
        Ok(bytes) => bytes,
        Err(broken) => return (Vec::new(), Some(broken)),
    };
    let count = word(&bytes, ranks as usize * 4);
    // There are no more grammars than ranks.
    let most = count.map_or(ranks, |count| count.min(ranks));
    let mut numbers = Vec::new();
    for rank in 0..ranks as usize {
        match word(&bytes, rank * 4).filter(|&number| number < most) {
            Some(number) => numbers.push(number),
            None => {
                let expected = format!("the number of the grammar of rank {rank}, below {most}");
                return (numbers, Some(Broken::new(NAME, rank as u64 * 4, expected)));
            }
        }
    }
    let broken = count.is_none().then(|| Broken::new(NAME, bytes.len() as u64, "the number of grammars"));
    (numbers, broken)
}

/// The different grammars: one behind the other in `ug.cfg`, or in files `0.cfg`, `1.cfg`, ….
pub(super) fn read_merged(folder: &Folder, count: usize, metadata: &Metadata) -> Usable<Vec<Grammar>> {
    const NAME: &str = "ug.cfg";
    let mut grammars = Vec::new();
    let mut first_broken = None;
    if !folder.has(NAME) {
        for number in 0..count {
            let (grammar, broken) = Grammar::read(folder, &format!("{number}.cfg"), metadata);
            grammars.push(grammar);
            first_broken = first_broken.or(broken);
        }
        return (grammars, first_broken);
    }
    let stored = match folder.read(NAME) {
        Ok(stored) => stored,
        Err(broken) => return (grammars, Some(broken)),
    };
    let mut at = 0;
    for _ in 0..count {
        if at >= stored.len() {
            let expected = format!("{count} grammars, found {}", grammars.len());
            return (grammars, first_broken.or(Some(Broken::new(NAME, at as u64, expected))));
        }
        let part = packed::unpack(NAME, &stored, at);
        let (grammar, broken) = Grammar::of_part(NAME, at as u64, &part);
        grammars.push(grammar);
        first_broken = first_broken.or(broken);
        at = part.end;
    }
    (grammars, first_broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_out(bodies: &[(i32, &[(i32, u32)])]) -> Vec<Result<u32, String>> {
        let bodies = bodies.iter().map(|(name, body)| (*name, body.to_vec())).collect();
        Grammar::of(&bodies, None).calls().take(100).collect()
    }

    #[test]
    fn rules_and_repetitions_are_written_out() {
        let calls = written_out(&[
            (-1, &[(7, 2), (-2, 2), (8, 1)]),
            (-2, &[(1, 1), (-3, 2)]),
            (-3, &[(2, 1), (3, 1)]),
        ]);
        let calls: Vec<u32> = calls.into_iter().flatten().collect();
        assert_eq!(calls, [7, 7, 1, 2, 3, 2, 3, 1, 2, 3, 2, 3, 8]);
    }

    #[test]
    fn what_stands_for_nothing_takes_no_time() {
        let most = u32::MAX;
        let calls =
            written_out(&[(-1, &[(-2, most), (-3, most), (5, 1)]), (-2, &[]), (-3, &[(-2, most), (4, 0)])]);
        assert_eq!(calls, [Ok(5)]);
        // A chain of names is one name.
        let chain: Vec<(i32, Vec<(i32, u32)>)> = (1..100_000)
            .map(|name| (-name, vec![(-name - 1, 1)]))
            .chain([(-100_000, vec![(9, 3)])])
            .collect();
        let grammar = Grammar::of(&chain.into_iter().collect(), None);
        assert_eq!((grammar.rules.len(), grammar.calls().flatten().count()), (1, 3));
    }

    #[test]
    fn what_is_missing_or_endless_ends_it() {
        let calls = written_out(&[(-1, &[(1, 1), (-5, 1), (2, 1)])]);
        assert_eq!(calls, [Ok(1), Err("rule -5, which others name".into())]);
        let calls = written_out(&[(-1, &[(1, 1), (-2, 1)]), (-2, &[(3, 1), (-1, 1)])]);
        assert_eq!(calls, [Ok(1), Ok(3), Err("no rule that contains itself, as -1 does".into())]);
        assert_eq!(written_out(&[]), []);
    }
}
