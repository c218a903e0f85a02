//! The text of a parameter file: blocks of `key = value`, values being words, numbers, lists and blocks.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::error::MachineError;

/// A block: `kind name { key = value, … }`.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) file: Rc<Path>,
    pub(super) line: usize,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) params: Vec<Param>,
}

/// A `key = value`.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) key: String,
    pub(super) value: Item,
}

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Word(String),
    List(Vec<Item>),
    Block(Block),
}

/// Blocks within blocks, and files within files.
const MOST_DEPTH: usize = 32;
/// No specification of a drive comes near it.
const MOST_BYTES: u64 = 64 << 20;

/// The blocks of a file, and of those that it takes in.
pub(super) fn read(path: &Path) -> Result<Vec<Block>, MachineError> {
    read_within(path, 0)
}

/// The text of a file.
pub(super) fn contents(path: &Path) -> Result<String, MachineError> {
    let error = |source| MachineError::File { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(error)?.len();
    if size > MOST_BYTES {
        return Err(syntax(path, 1, format!("{size} bytes: expected at most {MOST_BYTES}")));
    }
    let bytes = std::fs::read(path).map_err(error)?;
    String::from_utf8(bytes).map_err(|_| syntax(path, 1, "expected text, found something else".to_owned()))
}

pub(super) fn syntax(file: &Path, line: usize, message: String) -> MachineError {
    MachineError::Syntax { file: file.display().to_string(), line: NonZeroUsize::new(line), message }
}

fn read_within(path: &Path, depth: usize) -> Result<Vec<Block>, MachineError> {
    let text = contents(path)?;
    let mut reader = Reader { file: Rc::from(path), rest: &text, line: 1, depth };
    let mut blocks = Vec::new();
    while !reader.is_at_end() {
        let line = reader.line;
        let words = reader.words();
        if let Some(name) = words.strip_prefix("source ") {
            blocks.extend(read_within(&reader.beside(name), reader.deeper()?)?);
        } else if reader.peek() == Some('{') {
            blocks.push(reader.block(&words, line)?);
        } else {
            return Err(reader.unexpected("a block: kind name { key = value, ... }"));
        }
    }
    Ok(blocks)
}

struct Reader<'t> {
    file: Rc<Path>,
    rest: &'t str,
    line: usize,
    depth: usize,
}

impl Reader<'_> {
    /// A block whose kind and name were read.
    fn block(&mut self, words: &str, line: usize) -> Result<Block, MachineError> {
        self.expect('{')?;
        self.depth = self.deeper()?;
        let mut params: Vec<Param> = Vec::new();
        while self.peek() != Some('}') {
            let param = self.param()?;
            if params.iter().any(|other| other.key == param.key) {
                return Err(syntax(&self.file, param.value.line, format!("'{}' a second time", param.key)));
            }
            params.push(param);
            self.separator('}')?;
        }
        self.expect('}')?;
        self.depth -= 1;
        let (kind, name) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let (kind, name) = (kind.to_owned(), name.trim().to_owned());
        Ok(Block { file: Rc::clone(&self.file), line, kind, name, params })
    }

    fn param(&mut self) -> Result<Param, MachineError> {
        self.skip();
        let end = self.rest.find(['=', '\n', '{', '}', ',']).unwrap_or(self.rest.len());
        let key = self.rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        if key.is_empty() || !self.rest[end..].starts_with('=') {
            return Err(self.unexpected("key = value"));
        }
        self.advance(end + 1);
        Ok(Param { key, value: self.item()? })
    }

    fn item(&mut self) -> Result<Item, MachineError> {
        self.skip();
        let line = self.line;
        let value = match self.peek() {
            Some('[') => Value::List(self.list()?),
            Some('"') => Value::Word(self.quoted()?),
            _ => {
                let words = self.words();
                if self.peek() == Some('{') {
                    Value::Block(self.block(&words, line)?)
                } else if let Some(name) = words.strip_prefix("source ") {
                    Value::Block(self.source(name)?)
                } else if words.is_empty() {
                    return Err(self.unexpected("a value"));
                } else {
                    Value::Word(words)
                }
            }
        };
        Ok(Item { line, value })
    }

    fn list(&mut self) -> Result<Vec<Item>, MachineError> {
        self.expect('[')?;
        self.depth = self.deeper()?;
        let mut items = Vec::new();
        while self.peek() != Some(']') {
            items.push(self.item()?);
            self.separator(']')?;
        }
        self.expect(']')?;
        self.depth -= 1;
        Ok(items)
    }

    /// The only block of another file.
    fn source(&mut self, name: &str) -> Result<Block, MachineError> {
        let path = self.beside(name);
        let mut blocks = read_within(&path, self.deeper()?)?;
        match blocks.pop() {
            Some(block) if blocks.is_empty() => Ok(block),
            _ => Err(syntax(&path, 1, "expected one block in a file that is a value".to_owned())),
        }
    }

    fn quoted(&mut self) -> Result<String, MachineError> {
        self.expect('"')?;
        match self.rest.find(['"', '\n']) {
            Some(end) if self.rest[end..].starts_with('"') => {
                let text = self.rest[..end].to_owned();
                self.advance(end + 1);
                Ok(text)
            }
            _ => Err(self.unexpected("a closing quote")),
        }
    }

    /// What stands up to the end of the line, a comment, or the next sign; words one space apart.
    fn words(&mut self) -> String {
        self.skip();
        let end = self.rest.find([',', '[', ']', '{', '}', '#', '\n']).unwrap_or(self.rest.len());
        let words = self.rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        self.advance(end);
        words
    }

    fn separator(&mut self, end: char) -> Result<(), MachineError> {
        match self.peek() {
            Some(',') => {
                self.advance(1);
                Ok(())
            }
            Some(found) if found == end => Ok(()),
            _ => Err(self.unexpected(&format!("',' or '{end}'"))),
        }
    }

    fn expect(&mut self, sign: char) -> Result<(), MachineError> {
        if self.peek() != Some(sign) {
            return Err(self.unexpected(&format!("'{sign}'")));
        }
        self.advance(1);
        Ok(())
    }

    fn unexpected(&self, expected: &str) -> MachineError {
        let found: String = self.rest.chars().take_while(|letter| *letter != '\n').take(30).collect();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("'{}'", found.trim()) };
        syntax(&self.file, self.line, format!("found {found}: expected {expected}"))
    }

    fn deeper(&self) -> Result<usize, MachineError> {
        if self.depth >= MOST_DEPTH {
            let message = format!("expected blocks and files at most {MOST_DEPTH} deep within each other");
            return Err(syntax(&self.file, self.line, message));
        }
        Ok(self.depth + 1)
    }

    fn beside(&self, name: &str) -> PathBuf {
        beside(&self.file, name)
    }

    fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The next sign that is no blank and no comment.
    fn peek(&mut self) -> Option<char> {
        self.skip();
        self.rest.chars().next()
    }

    fn skip(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn advance(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
    }
}

/// A file that another names: in the same folder, unless its path says otherwise.
pub(super) fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(name)
}
