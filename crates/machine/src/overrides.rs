//! A machine with some keys of its description changed, as sweeps do it.

use toml::{Table, Value};

use crate::error::MachineError;
use crate::machine::Machine;
use crate::section::Source;

impl Machine {
    /// This machine with the value of `key` changed; tables are named with dots, as in `storage.io.count`.
    ///
    /// # Errors
    /// As [`Machine::with_all`].
    pub fn with(&self, key: &str, value: &str) -> Result<Machine, MachineError> {
        self.with_all(&[(key, value)])
    }

    /// This machine with the values of some keys changed, all at once: its description is read anew, so that everything
    /// is checked that is checked of a file. A value is written as in a description, but texts need no quotes.
    ///
    /// # Errors
    /// If there is no such key, or a value does not go with its key or with the others.
    pub fn with_all(&self, changes: &[(&str, &str)]) -> Result<Machine, MachineError> {
        let file = format!("{} ({})", self.name, names(changes));
        let text = self.to_toml("");
        let mut table: Table = text.parse().map_err(|error| syntax(&file, &error))?;
        for (key, value) in changes {
            set(&mut table, key, value).ok_or_else(|| MachineError::NoTable {
                machine: self.name.clone(),
                key: (*key).to_owned(),
            })?;
        }
        Machine::read(&Source { file: &file, text: &table.to_string(), is_seen: false })
    }
}

fn names(changes: &[(&str, &str)]) -> String {
    let names: Vec<String> = changes.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    names.join(", ")
}

fn syntax(file: &str, error: &toml::de::Error) -> MachineError {
    MachineError::Syntax { file: file.to_owned(), line: None, message: error.message().replace('\n', ", ") }
}

/// Sets a key; nothing if one of the tables in its name is not one.
fn set(table: &mut Table, key: &str, value: &str) -> Option<()> {
    let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut inner = table;
    for name in tables.split('.').filter(|name| !name.is_empty()) {
        let entry = inner.entry(name).or_insert_with(|| Value::Table(Table::new()));
        inner = entry.as_table_mut()?;
    }
    let value = read(inner.get(last), value);
    inner.insert(last.to_owned(), value);
    Some(())
}

/// A value as its text says; a text if that is what stood there, or if it is nothing else.
fn read(before: Option<&Value>, text: &str) -> Value {
    let text = text.trim();
    let quoted = || Value::String(text.to_owned());
    if matches!(before, Some(Value::String(_))) {
        return quoted();
    }
    let read: Option<Table> = format!("value = {text}").parse().ok();
    read.and_then(|mut table| table.remove("value")).unwrap_or_else(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{IoNodePlacement, Storage};

    fn machine() -> Machine {
        Machine::built_in("sp-argonne").unwrap()
    }

    #[test]
    fn a_changed_key_is_all_that_changes() {
        let changed = machine().with("storage.io.count", "4").unwrap();
        let Storage::Striped { io, .. } = &changed.storage else { panic!("striped") };
        assert_eq!(io.count, 4);
        let before = machine();
        let Storage::Striped { io, .. } = &before.storage else { panic!("striped") };
        let back = changed.with("storage.io.count", &io.count.to_string()).unwrap();
        assert_eq!(back, before);
    }

    #[test]
    fn texts_need_no_quotes_and_several_keys_change_at_once() {
        let changes = [("storage.io.placement", "clustered"), ("network.link.bandwidth", "10 MB/s")];
        let changed = machine().with_all(&changes).unwrap();
        assert_eq!(changed.network.link.bandwidth.to_string(), "10 MB/s");
        let Storage::Striped { io, .. } = &changed.storage else { panic!("striped") };
        assert_eq!(io.placement, IoNodePlacement::Clustered);
    }

    #[test]
    fn what_a_file_may_not_say_is_refused_and_named() {
        let refused = |key: &str, value: &str| machine().with(key, value).unwrap_err().to_string();
        assert_eq!(
            refused("storage.io.count", "0"),
            "sp-argonne (storage.io.count = 0): storage.io.count = 0: expected a whole number from 1 to 1048576",
            "no line of a text that nobody wrote"
        );
        let pios = Machine::built_in("pios-64").unwrap();
        assert_eq!(
            pios.with("storage.cache.size", "1 KiB").unwrap_err().to_string(),
            "pios-64 (storage.cache.size = 1 KiB): storage.cache.block = \"4 KiB\": expected no more than storage.cache.size"
        );
        assert!(refused("storage.io.cuont", "4").contains("unknown key 'storage.io.cuont'"));
        assert!(refused("network.link.bandwidth", "0 B/s").contains("expected a bandwidth from"));
        assert!(refused("name.of", "x").contains("name.of"));
        assert!(refused("", "x").contains("unknown key ''"));
    }
}
